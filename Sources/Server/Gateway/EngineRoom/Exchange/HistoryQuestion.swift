package import Engine
import Policy
package import Storage
package import Wire

/// A request that the history answers after recording all earlier events.
package struct HistoryQuestion {
    /// The function that answers a request from the history.
    package struct Subject {
        /// The result from the history.
        enum Found {
            case outcome(Outcome)
            /// The engine must continue the request.
            case more(EngineWork)
        }

        let find: (HistoryReading) throws(APIError) -> Found

        /// Creates a request whose answer is a JSON object. `write` appends its members.
        package init(_ write: @escaping (HistoryReading, inout JSONWriter) -> Void) {
            self.find = { reading in .outcome(.object { write(reading, &$0) }) }
        }

        init(find: @escaping (HistoryReading) throws(APIError) -> Found) {
            self.find = find
        }
    }

    let request: EngineRequest
    let subject: Subject
    /// The key for the numbers of devices in the history.
    let key: HashKey
    /// The difference between wall clock and policy time.
    let offset: WallOffset
    /// The launch policies and the times at which they took effect.
    let policies: PolicyVersions

    package init(
        _ request: EngineRequest,
        subject: Subject,
        key: HashKey,
        offset: WallOffset,
        policies: PolicyVersions
    ) {
        self.request = request
        self.subject = subject
        self.key = key
        self.offset = offset
        self.policies = policies
    }

    /// Answers from the history, or passes the request back to the engine.
    package func answer(from source: any HistorySource, _ mailboxes: PerOutput<LoopMailbox>) {
        var effects = EffectBatch()
        let reading = HistoryReading(source: source, key: self.key, offset: self.offset, policies: self.policies)
        var found: Subject.Found
        do throws(APIError) { found = try self.subject.find(reading) } catch { found = .outcome(.refused(error)) }
        if let failure = source.takeFailure() { found = .outcome(.refused(.storeFailed(failure))) }
        switch found {
        case .outcome(let outcome): effects.append(outcome, to: self.request.reply)
        case .more(let work): effects.append(.asked(self.request.going(on: work)))
        }
        mailboxes[self.request.reply].deliver(&effects)
    }
}

/// The data from which a request is answered.
package struct HistoryReading {
    let source: any HistorySource
    let key: HashKey
    let offset: WallOffset
    let policies: PolicyVersions

    /// Returns the number of a device in the history.
    func number(of token: DeviceToken) -> UInt64 { HistoryEvent.device(of: token, self.key) }

    /// Returns the time of the oldest event of a device that the caller may see. A device can be registered for another
    /// topic after its removal, so callers of some topics see its events since the last registration only.
    ///
    /// - `device`: the number of the device in the history.
    /// - `registeredAt`: the time of the last registration; nil to search the history for it.
    func oldest(_ device: UInt64, registeredAt: Instant?, for caller: Caller) -> Instant {
        guard caller.topics != .all else { return .distantPast }
        if let registeredAt { return registeredAt }
        return self.source.recent(device: device, count: 1) { $0.kind == .registered }.first?.at ?? .distantPast
    }

    /// Returns the number that the history uses for subscriptions of a topic.
    ///
    /// - `device`: the device that the streams name; nil for streams that name no device.
    func streams(_ topic: String, naming device: DeviceToken?) -> UInt64 {
        HistoryEvent.streams(topic, naming: device, self.key)
    }
}

extension Array {
    /// Returns the elements that the caller may see, as `HistoryReading.oldest` describes.
    ///
    /// - `event`: returns the event of an element. The events of the device are the newest first.
    func visible(to caller: Caller, _ event: (Element) -> HistoryEvent) -> [Element] {
        guard caller.topics != .all, let last = self.firstIndex(where: { event($0).kind == .registered }) else {
            return self
        }
        return Array(self[...last])
    }
}
