import Answers
package import Bytes
package import DeviceEngine
package import History
package import WakeDispatch

/// What somebody asks of the history, and how it is answered.
package struct HistoryQuestion {
    package enum Subject {
        /// What happened to a device last, behind the beginning of an answer.
        case recent(device: UInt64, beginning: [UInt8])
        /// The last pushes to a device, behind the beginning of an answer.
        case pushes(device: UInt64, beginning: [UInt8])
        /// What would have become of the last pushes to a device under another policy.
        case whatIf(PolicyReplay, device: UInt64)
        /// The way of a push: to this device, or when none is named to the one that had it last.
        case push(APNsID, device: UInt64?)
    }

    let reply: StreamAddress
    let subject: Subject
    /// Wall clock minus policy time.
    let offset: WallOffset
    /// Which launch policies were in force when.
    let policies: PolicyVersions

    package init(reply: StreamAddress, subject: Subject, offset: WallOffset, policies: PolicyVersions) {
        self.reply = reply
        self.subject = subject
        self.offset = offset
        self.policies = policies
    }

    /// Answers from the file.
    package func answer(from file: HistoryFile, _ mailboxes: PerOutlet<LoopMailbox>) {
        var writer = JSONWriter()
        var status = 200
        switch self.subject {
        case .recent(let device, let beginning):
            beginning.withByteView { writer.buffer.append($0) }
            writer.beginArray()
            for event in file.recent(device: device, count: Explanation.recentMax) {
                event.write(to: &writer, self.offset, self.policies)
            }
            writer.endArray()
            writer.endObject()
        case .pushes(let device, let beginning):
            beginning.withByteView { writer.buffer.append($0) }
            let recent = file.recent(device: device, count: PushList.eventsMax)
            PushList(recent: recent).write(to: &writer, self.offset)
            writer.endObject()
        case .whatIf(let replay, let device):
            let recent = file.recent(device: device, count: PolicyReplay.eventsMax)
            do throws(APIError) {
                try replay.write(recent, to: &writer, self.offset)
            } catch {
                status = error.status
                error.write(to: &writer)
            }
        case .push(let apnsID, let device):
            if let way = Self.way(apnsID, device, file) {
                way.write(to: &writer, self.offset)
            } else {
                status = APIError.unknownPush.status
                APIError.unknownPush.write(to: &writer)
            }
        }
        var effects = EffectBatch()
        effects.appendAnswer(self.reply, status: status, body: writer.buffer.view)
        mailboxes[self.reply].deliver(&effects)
    }

    private static func way(_ apnsID: APNsID, _ device: UInt64?, _ file: HistoryFile) -> PushWay? {
        let events = file.push(apnsID)
        guard let device = device ?? events.last?.device else { return nil }
        var way = PushWay(apnsID)
        for event in events where event.device == device { way.append(event) }
        return way.steps.isEmpty ? nil : way
    }
}
