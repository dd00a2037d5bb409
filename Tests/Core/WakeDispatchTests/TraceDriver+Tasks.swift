import Engine
import Foundation
import Policy
import WakeGateTestKit
import Wire

/// Requests and sessions of a trace.
extension TraceDriver {
    /// Does what a line says of requests and sessions.
    ///
    /// - Returns: whether something was cancelled.
    func takeTask(_ object: [String: Any], _ device: Int) throws -> Bool {
        let index = self.rig.rig.index(device)
        if let submit = object["submit"] as? [String: Any] { try self.submit(Self.request(submit), device, index) }
        if let finished = object["finished"] as? [String: Any], let session = finished["session"] as? String {
            let count = UInt64(finished["count"] as? Int ?? 1)
            do throws(TaskRejection) {
                try self.rig.dispatcher.transfersFinished(session: session, count: count, id: nil, index)
            } catch {
                // A ninth session is counted, and has no line.
                guard error == .tooManySessions else { throw CocoaError(.propertyListReadCorrupt) }
            }
        }
        guard let identifier = object["cancel"] as? String else { return false }
        self.rig.dispatcher.cancelTask(identifier, index)
        return true
    }

    private func submit(_ request: IncomingTask, _ device: Int, _ index: DeviceIndex) throws {
        do throws(TaskRejection) {
            _ = try self.rig.dispatcher.submit(request, index)
        } catch {
            guard case .policy(let refusal) = error else { throw CocoaError(.propertyListReadCorrupt) }
            self.add("\(self.rig.rig.now) task \(request.identifier) submit \(refusal.rawValue)", device)
        }
    }

    private static func request(_ object: [String: Any]) throws -> IncomingTask {
        guard let identifier = object["identifier"] as? String, let name = object["kind"] as? String else {
            throw CocoaError(.propertyListReadCorrupt)
        }
        var needs: TaskNeeds = []
        if object["requiresNetworkConnectivity"] as? Bool == true { needs.insert(.network) }
        if object["requiresExternalPower"] as? Bool == true { needs.insert(.externalPower) }
        let strategy = (object["strategy"] as? String).flatMap(TaskSubmission.Strategy.init) ?? .queue
        let kind: TaskSubmission.Kind
        switch name {
        case "appRefresh": kind = .appRefresh
        case "processing": kind = .processing(needs)
        case "continued": kind = .continued(strategy)
        default: throw CocoaError(.propertyListReadCorrupt)
        }
        let earliest = (object["earliestBegin"] as? Double).map { Instant(milliseconds: Self.milliseconds($0)) }
        return IncomingTask(identifier: identifier, kind: kind, earliestBegin: earliest)
    }

    /// The line that the simulator has for what happened to a request or a session; nil when it has none.
    func taskLine(_ entry: HistoryEntry, isCancelled: Bool) -> String? {
        let name = entry.name ?? "nobody"
        let kind: TaskKind
        let what: String
        switch entry.event.kind {
        case .taskSubmitted(let submitted, let disposition):
            (kind, what) = (submitted, "submit \(disposition.rawValue)")
        case .taskLaunch(let launched, let attempt):
            guard let wake = self.takeLaunched(name, launched), wake.task.attempts == UInt32(attempt) else {
                return "\(entry.event.at.milliseconds) \(name) was launched, and no stream got it"
            }
            (kind, what) = (launched, "launch \(launched.rawValue) \(wake.task.transfers) \(attempt)")
        case .taskResult(let ended, let outcome): (kind, what) = (ended, "result \(outcome.rawValue)")
        case .taskDropped(_, .replaced): return nil
        case .taskDropped(_, .cancelled) where isCancelled: return nil
        case .taskDropped(let dropped, let drop): (kind, what) = (dropped, "discard \(drop.rawValue)")
        case .registered, .removed, .conditions, .extended, .push, .launch, .result, .discard, .taskExtended,
            .transfersFinished, .namePart:
            return nil
        }
        let subject = kind == .urlSession ? "session" : "task"
        return "\(entry.event.at.milliseconds) \(subject) \(name) \(what)"
    }
}

extension TaskLine {
    /// The line as `TraceDriver` writes it.
    var driverText: String {
        let subject =
            switch self.subject {
            case .task(let name): "task \(name)"
            case .session(let name): "session \(name)"
            }
        let what =
            switch self.event {
            case .submit(let disposition): "submit \(disposition.name)"
            case .launch(let kind, let transfers, let attempt): "launch \(kind.rawValue) \(transfers) \(attempt)"
            case .result(let outcome): "result \(outcome.rawValue)"
            case .discard(let reason): "discard \(reason.rawValue)"
            }
        return "\(self.moment.milliseconds) \(subject) \(what)"
    }
}

extension Delivery {
    /// What takes turns with its answers: a session's are counted apart from those of a request of its name.
    var subject: String {
        guard let task = self.task else { return "" }
        return (task.task.kind == .urlSession ? "session " : "task ") + task.name
    }
}

/// What the requests and the sessions of a trace are named.
struct TraceNames {
    private(set) var tasks: [String] = []
    private(set) var sessions: [String] = []

    init(_ trace: [String]) throws {
        for line in trace {
            let object = try Self.object(line) ?? [:]
            if let name = (object["submit"] as? [String: Any])?["identifier"] as? String, !self.tasks.contains(name) {
                self.tasks.append(name)
            }
            if let name = (object["finished"] as? [String: Any])?["session"] as? String, !self.sessions.contains(name) {
                self.sessions.append(name)
            }
        }
    }

    /// What a line of a trace says; nil when it is blank.
    static func object(_ line: String) throws -> [String: Any]? {
        guard line.contains(where: { !$0.isWhitespace }) else { return nil }
        guard let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] else {
            throw CocoaError(.propertyListReadCorrupt)
        }
        return object
    }
}
