package import Engine
package import Storage
package import Wire

/// What somebody asks of the history, and how it is answered.
package struct HistoryQuestion {
    package enum Subject {
        /// What is known of a device, and what happened to it last.
        indirect case explanation(Explanation)
        /// The last pushes to a device.
        case pushes(DeviceToken)
        /// What happened to a device.
        case events(DeviceToken, EventSelection)
        /// What would have become of the last pushes to a device under another policy.
        indirect case whatIf(PolicyReplay)
        /// Pushes to all devices, for the engine that finds their devices where the history cannot.
        indirect case allPushes(PushQuestion, EngineRequest)
        /// The way of a push: to this device, or when none is named to the one that had it last.
        case push(APNsID, device: DeviceToken?)
    }

    let reply: StreamAddress
    let subject: Subject
    /// Makes the numbers that the history knows devices by.
    let key: HashKey
    /// Wall clock minus policy time.
    let offset: WallOffset
    /// Which launch policies were in force when.
    let policies: PolicyVersions

    package init(
        reply: StreamAddress,
        subject: Subject,
        key: HashKey,
        offset: WallOffset,
        policies: PolicyVersions
    ) {
        self.reply = reply
        self.subject = subject
        self.key = key
        self.offset = offset
        self.policies = policies
    }

    /// Answers from what the history has.
    package func answer(from source: any HistorySource, _ mailboxes: PerOutlet<LoopMailbox>) {
        var effects = EffectBatch()
        if case .allPushes(let question, let request) = self.subject {
            self.list(question, request, source, &effects)
            return mailboxes[self.reply].deliver(&effects)
        }
        let outcome = self.outcome(from: source)
        let failure = source.takeFailure()
        effects.append(failure.map { .refused(.storeFailed($0)) } ?? outcome, to: self.reply)
        mailboxes[self.reply].deliver(&effects)
    }

    /// Lists pushes, or has the engine do so that knows their devices.
    private func list(
        _ question: PushQuestion,
        _ request: EngineRequest,
        _ source: any HistorySource,
        _ effects: inout EffectBatch
    ) {
        let listing = PushListing(question, source, self.offset)
        let devices = source.devices(of: listing.devices, self.key)
        if let failure = source.takeFailure() {
            effects.append(.refused(.storeFailed(failure)), to: self.reply)
        } else if let devices {
            var writer = JSONWriter()
            listing.write(to: &writer, self.offset) { devices[$0] }
            effects.append(.json(writer), to: self.reply)
        } else {
            effects.append(request.going(on: .listedPushes(listing)))
        }
    }

    private func outcome(from source: any HistorySource) -> Outcome {
        var writer = JSONWriter()
        switch self.subject {
        case .allPushes: break
        case .explanation(let explanation):
            writer.beginObject()
            explanation.writeMembers(to: &writer)
            writer.key("recent")
            writer.beginArray()
            let device = self.number(of: explanation.device.token)
            for entry in source.entries(device: device, count: Explanation.recentMax) {
                entry.write(to: &writer, self.offset, self.policies)
            }
            writer.endArray()
            writer.endObject()
        case .pushes(let device):
            writer.beginObject()
            writer.key("token")
            writer.hex { device.writeHex(to: &$0) }
            writer.key("pushes")
            PushList(recent: self.pushEvents(device, source)).write(to: &writer, self.offset)
            writer.endObject()
        case .events(let device, let selection):
            writer.beginObject()
            writer.key("token")
            writer.hex { device.writeHex(to: &$0) }
            self.page(device, selection, source).writeMembers(to: &writer, self.offset, self.policies)
            writer.endObject()
        case .whatIf(let replay):
            let recent = source.recent(device: self.number(of: replay.token), count: PolicyReplay.eventsMax)
            do throws(APIError) { try replay.write(recent, to: &writer, self.offset) } catch { return .refused(error) }
        case .push(let apnsID, let device):
            guard let way = Self.way(apnsID, device.map { self.number(of: $0) }, source) else {
                return .refused(.unknownPush)
            }
            way.write(to: &writer, self.offset)
        }
        return .json(writer)
    }

    private func pushEvents(_ device: DeviceToken, _ source: any HistorySource) -> [HistoryEvent] {
        source.recent(
            device: self.number(of: device),
            count: PushList.eventsMax,
            examinedMax: PushList.examinedMax,
            where: { $0.kind.task == nil }
        )
    }

    private func page(_ device: DeviceToken, _ selection: EventSelection, _ source: any HistorySource) -> HistoryPage {
        source.page(
            device: self.number(of: device),
            before: selection.before?.place,
            countMax: selection.limit,
            examinedMax: EventSelection.examinedMax,
            where: { selection.contains($0) }
        )
    }

    private func number(of token: DeviceToken) -> UInt64 { HistoryEvent.device(of: token, self.key) }

    private static func way(_ apnsID: APNsID, _ device: UInt64?, _ source: any HistorySource) -> PushWay? {
        let events = source.push(apnsID)
        guard let device = device ?? events.last?.device else { return nil }
        var way = PushWay(apnsID)
        for event in events where event.device == device { way.append(event) }
        return way.steps.isEmpty ? nil : way
    }
}
