package import Engine
package import Storage
package import Wire

/// What somebody asks of the history, which answers behind everything that happened until then.
package struct HistoryQuestion {
    /// How it is answered, from what the history has.
    package struct Subject {
        /// What the history knows of it.
        enum Found {
            case outcome(Outcome)
            /// The engine has to go on with it.
            case more(EngineWork)
        }

        let find: (HistoryReading) throws(APIError) -> Found

        /// A question whose answer is JSON.
        package init(_ write: @escaping (HistoryReading, inout JSONWriter) throws(APIError) -> Void) {
            self.find = { reading throws(APIError) in
                var writer = JSONWriter()
                try write(reading, &writer)
                return .outcome(.json(writer))
            }
        }

        init(find: @escaping (HistoryReading) throws(APIError) -> Found) {
            self.find = find
        }
    }

    let request: EngineRequest
    let subject: Subject
    /// Makes the numbers that the history knows devices by.
    let key: HashKey
    /// Wall clock minus policy time.
    let offset: WallOffset
    /// Which launch policies were in force when.
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

    /// Answers from what the history has, or has the engine go on.
    package func answer(from source: any HistorySource, _ mailboxes: PerOutlet<LoopMailbox>) {
        var effects = EffectBatch()
        let reading = HistoryReading(source: source, key: self.key, offset: self.offset, policies: self.policies)
        var found: Subject.Found
        do throws(APIError) { found = try self.subject.find(reading) } catch { found = .outcome(.refused(error)) }
        if let failure = source.takeFailure() { found = .outcome(.refused(.storeFailed(failure))) }
        switch found {
        case .outcome(let outcome): effects.append(outcome, to: self.request.reply)
        case .more(let work): effects.append(self.request.going(on: work))
        }
        mailboxes[self.request.reply].deliver(&effects)
    }
}

/// The history as a question reads it.
package struct HistoryReading {
    let source: any HistorySource
    let key: HashKey
    let offset: WallOffset
    let policies: PolicyVersions

    /// The number that the history knows a device by.
    func number(of token: DeviceToken) -> UInt64 { HistoryEvent.device(of: token, self.key) }
}
