import Engine
import Policy
import Wire

/// What one caller may do to devices, wakes and streams: what is of a topic beyond theirs is not there.
struct Reach {
    let workspace: Workspace
    let caller: Caller

    init(_ workspace: Workspace, _ caller: Caller) {
        self.workspace = workspace
        self.caller = caller
    }

    private var engine: EmbeddedEngine { self.workspace.engine }
    private var dispatcher: Dispatcher { self.workspace.dispatcher }

    /// The device with this token.
    func device(_ name: Named<DeviceToken>) throws(APIError) -> ReachedDevice {
        guard let device = name.find(in: self.engine, for: self.caller) else { throw .unknownDevice }
        return device
    }

    /// The device with this token, unless it was removed.
    func registered(_ name: Named<DeviceToken>) throws(APIError) -> DeviceIndex {
        let device = try self.device(name).index
        guard self.engine.identity(device).isRegistered else {
            let moment = self.engine.snapshot(device).registrationChangedAt
            throw .unregistered(at: self.workspace.offset.wall(moment))
        }
        return device
    }

    /// The topic of this name.
    func topic(_ name: [UInt8]) throws(APIError) -> TopicIndex {
        guard let topic = name.withByteView({ self.engine.findTopic($0) }),
            self.caller.reaches(topic, in: self.engine)
        else { throw .unknownTopic }
        return topic
    }

    // MARK: Workers

    /// The wake of this id, unless it is of a topic beyond the caller's; the engine may know none.
    func wake(_ name: Named<WakeID>) throws(APIError) -> WakeID {
        guard let wake = name.find(in: self.engine, for: self.caller) else { throw .unknownWake }
        return wake
    }

    func report(_ name: Named<WakeID>, _ report: WakeReport) throws(APIError) -> Outcome {
        switch self.dispatcher.report(report, wake: try self.wake(name)) {
        case .ended, .repeated: return .done
        case .endedOtherwise(let outcome): throw .wakeEnded(outcome.name)
        case .otherKind:
            switch report {
            case .push: throw .successExpected
            case .task: throw .resultExpected
            }
        case .unknown: throw .unknownWake
        }
    }

    /// - `milliseconds`: nil for as long as a wake has at first.
    func extend(_ name: Named<WakeID>, by milliseconds: Int64?) throws(APIError) -> Outcome {
        let wake = try self.wake(name)
        guard let window = self.engine.executionWindow(ofWake: wake) else { throw .unknownWake }
        switch self.dispatcher.extend(wake, by: milliseconds ?? window) {
        case .lasts(let deadline):
            let timeLeft = deadline.milliseconds - self.engine.now.milliseconds
            return .extended(wake, deadline: self.workspace.offset.wall(deadline), timeLeft: timeLeft)
        case .limitReached(let deadline):
            let isContinued = self.engine.launchedWake(wake)?.kind == .continued
            throw .extensionLimitReached(self.workspace.offset.wall(deadline), isContinued: isContinued)
        case .ended(let outcome): throw .wakeEnded(outcome.name)
        case .unknown: throw .unknownWake
        }
    }

    /// - `reason`: what the worker says about it.
    func release(_ name: Named<WakeID>, _ reason: String) throws(APIError) -> Outcome {
        switch self.dispatcher.release(try self.wake(name), reason: reason) {
        case .released: return .done
        case .ended(let outcome): throw .wakeEnded(outcome.name)
        case .unknown: throw .unknownWake
        }
    }

    func drain(_ stream: StreamAddress) throws(APIError) -> Outcome {
        let isThere = self.dispatcher.streamDraining(stream) { self.caller.reaches($0, in: self.engine) }
        guard isThere else { throw .unknownStream }
        return .done
    }

    // MARK: Devices

    func register(_ token: DeviceToken, _ topic: [UInt8]) throws(APIError) -> Admission {
        // A token that was removed may move to another topic, but nobody takes it from a topic beyond their own.
        if self.engine.find(token) != nil, Named(token).find(in: self.engine, for: self.caller) == nil {
            throw .otherTopic
        }
        return topic.withByteView { self.dispatcher.register(token, topic: $0) }
    }

    func unregister(_ name: Named<DeviceToken>) throws(APIError) -> Outcome {
        self.dispatcher.unregister(try self.device(name).index)
        return .done
    }

    func conditions(_ name: Named<DeviceToken>, _ report: ConditionsReport) throws(APIError) -> Outcome {
        .conditions(self.dispatcher.conditions(report, try self.registered(name)))
    }

    // MARK: Operators

    func simulateLaunch(_ name: Named<DeviceToken>, ofPendingAlone: Bool) throws(APIError) -> Outcome {
        switch self.dispatcher.simulateLaunch(try self.registered(name), ofPendingAlone: ofPendingAlone) {
        case .launched: return .accepted
        case .laneIsFull: throw .wakeInFlight
        case .noWorker: throw .noWorker
        case .notWaiting: throw .nothingPending
        }
    }

    func simulateExpiration(_ name: Named<DeviceToken>) throws(APIError) -> Outcome {
        guard self.dispatcher.simulateExpiration(try self.device(name).index) else { throw .noWakeInFlight }
        return .accepted
    }

    func replay(_ name: Named<DeviceToken>, _ whatIf: WhatIf) throws(APIError) -> PolicyReplay {
        let device = try self.device(name)
        let parameters = self.engine.snapshot(device.index).parameters
        return PolicyReplay(token: device.token, whatIf: whatIf, parameters: parameters, now: self.engine.now)
    }
}
