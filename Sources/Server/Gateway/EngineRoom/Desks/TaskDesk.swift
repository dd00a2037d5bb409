import Engine
import Policy
import Wire

/// Does what one caller asks of background tasks and sessions.
struct TaskDesk {
    let reach: Reach
    let limits: LimitCounts
    /// Nothing new is taken.
    let isDraining: Bool

    private var workspace: Workspace { self.reach.workspace }

    // MARK: Whoever stands for a device

    func submit(_ name: Named<DeviceToken>, _ request: TaskRequest) throws(APIError) -> Outcome {
        guard !self.isDraining else { throw .shutdown }
        let device = try self.reach.registered(name)
        let offset = self.workspace.offset
        do throws(TaskRejection) {
            let answer = try self.workspace.dispatcher.submit(request.incoming(offset), device)
            let kind = request.kind.taskKind
            return .submitted(
                SubmittedTask(identifier: request.identifier, kind: kind, answer: answer, offset: offset)
            )
        } catch {
            throw self.refusal(error)
        }
    }

    func transfersFinished(_ name: Named<DeviceToken>, _ finished: FinishedTransfers) throws(APIError) -> Outcome {
        guard !self.isDraining else { throw .shutdown }
        let device = try self.reach.registered(name)
        do throws(TaskRejection) {
            try self.workspace.dispatcher.transfersFinished(
                session: finished.session,
                count: finished.count,
                id: finished.id,
                device
            )
            return .accepted
        } catch {
            throw self.refusal(error)
        }
    }

    private func refusal(_ rejection: TaskRejection) -> APIError {
        switch rejection {
        case .policy(let refusal): return APIError(refusal)
        case .tooManySessions: return .tooManySessions
        case .bound(let limit):
            self.limits.met(limit)
            return .tooManyTasks(limit: limit.rawValue)
        }
    }

    /// - `identifier`: nil for every request of the device.
    func cancel(_ name: Named<DeviceToken>, _ identifier: String?) throws(APIError) -> Outcome {
        let device = try self.reach.registered(name)
        if let identifier {
            self.workspace.dispatcher.cancelTask(identifier, device)
        } else {
            self.workspace.dispatcher.cancelAllTasks(device)
        }
        return .done
    }

    func list(_ name: Named<DeviceToken>) throws(APIError) -> Outcome {
        let snapshot = self.workspace.dispatcher.snapshot(try self.reach.registered(name))
        var writer = JSONWriter()
        TaskList(device: snapshot, offset: self.workspace.offset).write(to: &writer)
        return .json(writer)
    }

    func resources(_ topic: [UInt8]) -> Outcome {
        let topic = topic.withByteView { self.workspace.engine.findTopic($0) }
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("resources")
        writer.beginArray()
        for resource in topic.map({ self.workspace.dispatcher.resources($0) }) ?? [] { writer.string(resource) }
        writer.endArray()
        writer.endObject()
        return .json(writer)
    }

    // MARK: Workers

    func progress(_ name: Named<WakeID>, _ progress: TaskProgress) throws(APIError) -> Outcome {
        let wake = try self.reach.wake(name)
        switch self.workspace.dispatcher.progress(progress, wake: wake) {
        case .lasts(let deadline): return .progressed(deadline: self.workspace.offset.wall(deadline))
        case .notContinued: throw .notContinued
        case .ended(let outcome): throw .wakeEnded(outcome.name)
        case .unknown: throw .unknownWake
        }
    }

    // MARK: Operators

    func simulateLaunch(_ name: Named<DeviceToken>, _ identifier: String) throws(APIError) -> Outcome {
        let device = try self.reach.registered(name)
        switch self.workspace.dispatcher.simulateLaunch(device, identifier: identifier) {
        case .launched: return .accepted
        case .laneIsFull: throw .laneIsFull
        case .notWaiting: throw .taskNotWaiting
        case .noWorker: throw .noWorkerForTask
        }
    }

    func simulateExpiration(_ name: Named<DeviceToken>, _ identifier: String) throws(APIError) -> Outcome {
        let device = try self.reach.device(name).index
        let isEnded = self.workspace.dispatcher.simulateExpiration(device, identifier: identifier)
        guard isEnded else { throw .taskNotRunning }
        return .accepted
    }
}
