package import Policy
package import Wire

extension DeviceEngine {
    /// Decides on a push for a token. With open registration, an unknown token is registered, except in a dry run.
    package func admit(_ token: borrowing DeviceToken, topic name: ByteView, isDryRun: Bool) -> Admission {
        guard let device = self.find(token) else {
            guard self.configuration.openRegistration else { return .refused(.unknown) }
            if let refusal = self.refusalOfNewcomer(topic: name) { return .refused(refusal) }
            guard !isDryRun else { return .newDevice(self.topics.find(name)) }
            return .device(self.insert(copy token, topic: self.topic(name)))
        }
        let record = self.devices[device]
        guard record.isRegistered else { return .refused(.unregistered(record.registrationChangedAt)) }
        let isSame = self.topics.isName(name, of: record.topic)
        return isSame ? .device(device) : .refused(.otherTopic)
    }

    /// Returns the device with this token, also if it was removed.
    package func find(_ token: borrowing DeviceToken) -> DeviceIndex? {
        let number = HistoryEvent.device(of: token, self.events.key)
        guard let device = self.devices.find(token, hash: number) else { return nil }
        self.events.found(device, number: number)
        return device
    }

    /// Accepts a push for a device that `admit` returned. A repetition of an accepted push with a client-supplied
    /// apns-id gets the same answer and changes nothing. Call `catchUp` for the device first.
    ///
    /// - `expiration`: the push's expiration, in policy time.
    /// - `workerIsFree`: true if a worker has a free slot for this device.
    /// - Throws: `tooMany` if the device has reached its push rate, `noMemory` or `noMemoryForTopic` if the memory for
    ///   pending pushes is used up.
    package func accept(
        _ push: Push,
        _ expiration: Expiration,
        device: DeviceIndex,
        workerIsFree: Bool
    ) throws(Refusal) -> PushAnswer {
        if let before = self.devices[device].answerBefore(push, at: self.now) { return before }
        let topic = self.devices[device].topic
        if let refusal = self.memoryRefusal(push, device, topic) { throw refusal }
        try self.devices[device].countRate(self.configuration.pushRate, at: self.now)
        guard push.wakes else {
            self.count(topic) { $0.noWake += 1 }
            self.remember(device, .push(.noWake), push.apnsID)
            let answer = PushAnswer(.noWake)
            self.noteAnswer(answer, push, device)
            return answer
        }
        let older = self.devices[device].state.pending.flatMap { PushContent($0.handle) }
        let content = self.traces.content(of: push, inPlaceOf: older)
        self.memory.hold(content, topic)
        let parameters = self.parameters(topic)
        let (handle, priority, now) = (content.handle, push.priority, self.now)
        let action = self.change(device) {
            $0.pushReceived(handle, priority, expiration, at: now, workerIsFree: workerIsFree, parameters, with: &$1)
        }
        self.count(topic) { $0.accepted += 1 }
        var answer = PushAnswer(
            action,
            self.devices[device].state,
            isLaneFull: self.isShortLaneFull(device),
            isPaused: self.isPaused(topic),
            now,
            parameters
        )
        let absorbedID = action.absorbed.flatMap { PushContent($0)?.apnsID }
        let terms = PushTerms(push.priority, expiration, at: self.now)
        self.remember(
            device,
            .push(answer.disposition),
            push.apnsID,
            related: absorbedID,
            terms: terms,
            payloadBytes: push.payload.count
        )
        switch action {
        case .launched(let absorbed):
            self.absorb(absorbed, topic)
            self.times.lateness.record(0)
            answer.wake = self.noteLaunch(device)
        case .waits(let absorbed): self.absorb(absorbed, topic)
        case .discarded: self.discard(content.handle, .expired, device, self.waited(device, arriving: priority))
        }
        self.noteAnswer(answer, push, device)
        self.reconcile(device)
        return answer
    }

    /// Returns the answer that `accept` would give. Changes nothing.
    ///
    /// - `device`: nil for a token that the push would register.
    package func acceptDryRun(
        _ push: Push,
        _ expiration: Expiration,
        device: DeviceIndex?,
        topic: TopicIndex?,
        workerIsFree: Bool
    ) -> PushAnswer {
        guard push.wakes else { return PushAnswer(.noWake) }
        let parameters = topic.map { self.parameters($0) } ?? self.configuration.policy
        var lanes = device.map { self.lanes($0) } ?? DeviceLanes()
        while lanes.timePassed(self.now, parameters) != .nothing {}
        let action = lanes.pushReceived(
            .none,
            push.priority,
            expiration,
            at: self.now,
            workerIsFree: workerIsFree,
            parameters
        )
        return PushAnswer(
            action,
            lanes.device,
            isLaneFull: lanes.isFull(.short, parameters),
            isPaused: topic.map { self.isPaused($0) } ?? false,
            self.now,
            parameters
        )
    }

    /// Returns the refusal of a push if the memory for pending pushes is used up; otherwise nil. Changes nothing.
    ///
    /// A push that replaces a pending push of at least its size needs no memory.
    ///
    /// - `device`: nil if the token is not registered.
    /// - `topic`: the device's topic; nil if the topic is new.
    package func memoryRefusal(_ push: Push, _ device: DeviceIndex?, _ topic: TopicIndex?) -> Refusal? {
        guard push.wakes else { return nil }
        let byteCount = PushContent.byteCount(push)
        let refusal = self.memory.refusal(
            byteCount,
            topic,
            bytesMax: self.configuration.pendingBytesMax,
            bytesPerTopicMax: self.configuration.pendingBytesPerTopicMax
        )
        guard let refusal else { return nil }
        let older = device.flatMap { self.devices[$0].state.pending }.flatMap { PushContent($0.handle) }
        return older.map { $0.byteCount >= byteCount } ?? false ? nil : refusal
    }

    /// Returns the refusal of a push beyond the device's push rate, or nil. Changes nothing.
    package func rateRefusal(_ device: DeviceIndex) -> Refusal? {
        self.devices[device].rateRefusal(self.configuration.pushRate, at: self.now)
    }

    /// Remembers the answer in the device's record, so that it is committed together with the push.
    private func noteAnswer(_ answer: PushAnswer, _ push: Push, _ device: DeviceIndex) {
        guard push.hasClientID else { return }
        self.devices[device].noteAnswer(answer, push, at: self.now)
        self.devices.noteChange(device)
    }

    func absorb(_ older: PushHandle?, _ topic: TopicIndex) {
        guard let older else { return }
        self.count(topic) { $0.coalesced += 1 }
        if let content = PushContent(older) { self.memory.letGo(content, topic) }
    }
}

// MARK: - Arrivals

extension DeviceEngine {
    /// Accepts a task request for a registered device. Call `catchUp` for the device first.
    ///
    /// - `hasSlot`: true if a stream that accepts the request has a free slot for this device.
    /// - Throws: `TaskRejection` if the request is not accepted. A rejection changes only a counter and the log.
    package func submit(
        _ request: IncomingTask,
        device: DeviceIndex,
        hasSlot: Bool
    ) throws(TaskRejection) -> TaskAnswer {
        let topic = self.devices[device].topic
        let parameters = self.parameters(topic)
        let isPermitted = self.configuration.permittedTasks.permits(
            request.identifier,
            topic: self.topics.name(topic)
        )
        let row = self.tasks.row(device)
        defer { if row.isBlank { self.letGo(device) } }
        var lanes = self.lanes(device)
        let action = lanes.submitted(
            row.nameToBe(request.identifier),
            request.kind,
            earliestBegin: request.earliestBegin,
            at: self.now,
            isPermitted: isPermitted,
            slotIsFree: hasSlot,
            parameters
        )
        if case .refused(let refusal) = action {
            self.count(topic) { $0.requests.refused[refusal] += 1 }
            throw self.refused(.policy(refusal), request.kind.taskKind, request.identifier, device)
        }
        let replaced = action.replaced.map { TaskRow.bytes(row.text($0.name), row.details($0)) }
        let bytes = TaskRow.bytes(request.identifier, request.details) - (replaced ?? 0)
        if let limit = self.limitMet(bytes, count: replaced == nil ? 1 : 0, topic) {
            throw self.refused(.bound(limit), request.kind.taskKind, request.identifier, device)
        }
        row.keepName(request.identifier)
        self.changeLanes(device) { $0 = lanes }
        let answer = self.taken(request, action, device, lanes, parameters)
        self.reconcile(device)
        return answer
    }

    /// Records an accepted request and returns its answer.
    ///
    /// - `lanes`: the device's lanes, this request included.
    private func taken(
        _ request: IncomingTask,
        _ action: TaskSubmittedAction,
        _ device: DeviceIndex,
        _ lanes: DeviceLanes,
        _ parameters: Parameters
    ) -> TaskAnswer {
        let row = self.tasks.row(device)
        let kind = request.kind.taskKind
        self.count(self.devices[device].topic) { $0.requests.submitted[kind] += 1 }
        switch action {
        case .refused: preconditionFailure("a request that was refused is not taken")
        case .launched(let wake, let replaced):
            self.remember(device, .taskSubmitted(kind, .launched), name: request.identifier)
            if let replaced { self.noteDropped(replaced, .replaced, device) }
            row.keep(request.details, of: wake.task.arrival)
            self.times.lateness.record(0)
            let id = self.noteTaskLaunch(wake, device)
            return TaskAnswer(.launched, wake: id)
        case .waits(let task, let replaced):
            let disposition = replaced == nil ? TaskDisposition.scheduled : .replaced
            self.remember(device, .taskSubmitted(kind, disposition), name: request.identifier)
            if let replaced { self.noteDropped(replaced, .replaced, device) }
            row.keep(request.details, of: task.arrival)
            return TaskAnswer(
                disposition,
                heldBy: lanes.hold(task, at: self.now, parameters),
                eligibleAt: lanes.eligibleAt(task, parameters),
                isLaneFull: lanes.isFull(kind.lane, parameters),
                isPaused: self.isPaused(self.devices[device].topic),
                at: self.now
            )
        }
    }

    /// Records finished transfers of a background session for a registered device. Call `catchUp` for the device first.
    ///
    /// - `count`: the number of transfers, at least 1.
    /// - `id`: the id of the event. If the device remembers the id, nothing changes.
    /// - Throws: `TaskRejection` if the transfers are not accepted. A rejection changes only a counter and the log.
    package func transfersFinished(
        session: String,
        count: UInt64,
        id: String?,
        device: DeviceIndex
    ) throws(TaskRejection) {
        let topic = self.devices[device].topic
        let row = self.tasks.row(device)
        defer { if row.isBlank { self.letGo(device) } }
        if let id, row.hasEvent(id) { return }
        let name = row.nameToBe(session)
        var lanes = self.lanes(device)
        var (bytes, wakes): (Int, Int64) = (id.map { row.bytesAdded(byEvent: $0) } ?? 0, 0)
        switch lanes.transfersFinished(name, count: count, at: self.now) {
        case .refused:
            self.count(topic) { $0.sessions.refused += Int64(clamping: count) }
            throw self.refused(.tooManySessions, .urlSession, session, device)
        case .waits:
            bytes += TaskRow.bytes(session, TaskDetails())
            wakes = 1
        case .merged: break
        }
        if let limit = self.limitMet(bytes, count: wakes, topic) {
            throw self.refused(.bound(limit), .urlSession, session, device)
        }
        row.keepName(session)
        self.changeLanes(device) { $0 = lanes }
        if let id {
            row.keepEvent(id)
            self.tasks.noteChange(device, row)
        }
        self.count(topic) { $0.sessions.finished += Int64(clamping: count) }
        // An event holds 16 bits of a number. Two hold more than a report may have.
        let first = UInt16(clamping: count)
        self.remember(device, .transfersFinished(count: first), name: session)
        let rest = UInt16(clamping: count - UInt64(first))
        if rest > 0 { self.remember(device, .transfersFinished(count: rest), name: session) }
        self.reconcile(device)
    }

    /// Records the rejection of a request or of finished transfers.
    private func refused(
        _ rejection: TaskRejection,
        _ kind: TaskKind,
        _ name: String,
        _ device: DeviceIndex
    ) -> TaskRejection {
        self.remember(device, .taskRefused(kind, rejection), name: name)
        return rejection
    }

    /// Removes a row that was created for a rejected submission.
    private func letGo(_ device: DeviceIndex) {
        self.tasks.remove(device)
        self.devices[device].hasTasks = false
    }

    /// Returns the limit that `count` more requests or sessions with `bytes` more bytes would exceed, or nil.
    private func limitMet(_ bytes: Int, count: Int64, _ topic: TopicIndex) -> EngineLimit? {
        let configuration = self.configuration
        // Check the limits of the topic before the totals, so that a topic beyond its share is refused with its own
        // limit. A share of 100% does not limit a topic.
        let (requestsMax, bytesMax) = (configuration.taskRequestsPerTopicMax, configuration.taskBytesPerTopicMax)
        if count > 0, requestsMax < configuration.taskRequestsMax,
            self.topics.counters(topic).requestCount >= requestsMax
        {
            return .taskTopicPercentMax
        }
        if bytes > 0, bytesMax < configuration.taskBytesMax, self.taskMemory.bytes(topic) + bytes > bytesMax {
            return .taskTopicPercentMax
        }
        if count > 0, self.totals.requestCount >= configuration.taskRequestsMax { return .taskRequestsMax }
        return bytes > 0 && self.taskMemory.bytes + bytes > configuration.taskBytesMax ? .taskBytesMax : nil
    }
}

// MARK: - Cancellation

extension DeviceEngine {
    /// Cancels the request with this identifier, or every request of the device if `identifier` is nil. Pending
    /// requests are dropped, and a running continued task ends.
    package func cancelTask(_ identifier: String?, device: DeviceIndex) {
        self.settle(device)
        guard let row = self.tasks[device] else { return }
        let name = identifier.flatMap { row.find($0) }
        guard identifier == nil || name != nil else { return }
        let action = self.changeLanes(device) { $0.cancelled(name) }
        for task in action.discarded { self.noteDropped(task, .cancelled, device, isCancelled: true) }
        for wake in action.ended {
            self.wakes.expired.append((self.noteTaskEnd(device, wake, .cancelled, .ended(wake.task)), .cancelled))
        }
        self.settle(device)
    }
}

// MARK: - Ends of requests

extension DeviceEngine {
    /// Returns the identifier of a request of the device, or the name of a session.
    func text(_ task: BackgroundTask, _ device: DeviceIndex) -> String { self.tasks.row(device).text(task.name) }

    /// Records the end of a request, or of a session's transfers, without a result.
    ///
    /// - `isCancelled`: true if the task was cancelled while pending; such tasks have a separate counter.
    /// - `waits`: true if the task was pending; false if it was in flight.
    func noteDropped(
        _ task: BackgroundTask,
        _ reason: DiscardReason,
        _ device: DeviceIndex,
        isCancelled: Bool = false,
        waits: Bool = true
    ) {
        self.count(self.devices[device].topic) { counters in
            if task.kind == .urlSession {
                counters.sessions.discarded[reason] += Int64(clamping: task.transfers)
            } else if reason == .replaced {
                counters.requests.replaced += 1
            } else if isCancelled {
                counters.requests.cancelled += 1
            } else {
                counters.requests.discarded[reason] += 1
            }
        }
        let waited = waits ? self.waited(device, task, isLaunched: false) : nil
        let event = HistoryEvent.Kind.discard(LaunchKind(task.kind), reason)
        self.remember(device, event, name: self.text(task, device), related: waited?.stored)
    }
}

/// The answer to an accepted push or request.
package struct LaunchAnswer<Disposition: Hashable & Sendable>: Hashable, Sendable {
    package let disposition: Disposition
    /// The first time at which interval, budget, earliest start and habits allow the pending launch; nil if a hold
    /// applies or nothing is pending.
    package let eligibleAt: Instant?
    /// The first hold that applies to the pending launch.
    package let held: Hold?
    /// The wake that was launched immediately.
    package var wake: WakeID?
}

package typealias PushAnswer = LaunchAnswer<Disposition>
package typealias TaskAnswer = LaunchAnswer<TaskDisposition>

extension LaunchAnswer {
    /// Creates an answer for a launch that is not pending.
    init(_ disposition: Disposition, wake: WakeID? = nil) {
        self.init(disposition: disposition, eligibleAt: nil, held: nil, wake: wake)
    }

    /// Creates an answer for a pending launch.
    ///
    /// - `hold`: the first hold from the device's conditions.
    /// - `isLaneFull`: true if the launch's lane has its maximum number of wakes in flight.
    /// - `isPaused`: true if the device's topic is paused.
    init(
        _ disposition: Disposition,
        heldBy hold: Hold?,
        eligibleAt: Instant,
        isLaneFull: Bool,
        isPaused: Bool,
        at now: Instant
    ) {
        let isDue = !isLaneFull && eligibleAt <= now
        let held = isPaused ? .paused : hold ?? (isDue ? .worker : nil)
        self.init(disposition: disposition, eligibleAt: held == nil ? max(eligibleAt, now) : nil, held: held, wake: nil)
    }
}

extension PushAnswer {
    /// Creates an answer from the action of a push and the resulting state of its device. The wake is not set.
    init(
        _ action: PushReceivedAction,
        _ state: DeviceState,
        isLaneFull: Bool,
        isPaused: Bool,
        _ now: Instant,
        _ parameters: Parameters
    ) {
        switch action {
        case .launched: self.init(.launched)
        case .discarded: self.init(.discarded)
        case .waits(let absorbed):
            guard let pending = state.pending else { preconditionFailure("a push that waits is pending") }
            self.init(
                absorbed == nil ? .scheduled : .coalesced,
                heldBy: state.hold(pending.priority, parameters),
                eligibleAt: state.eligibleAt(pending.priority, parameters),
                isLaneFull: isLaneFull,
                isPaused: isPaused,
                at: now
            )
        }
    }
}

/// The immediate outcome of an accepted push, as reported to its provider.
package enum Disposition: UInt8, BitwiseCopyable, Sendable, CaseIterable {
    case launched, scheduled, coalesced, discarded, noWake

    package var name: StaticString {
        switch self {
        case .launched: "launched"
        case .scheduled: "scheduled"
        case .coalesced: "coalesced"
        case .discarded: "discarded"
        case .noWake: "no-wake"
        }
    }
}

/// A submitted request for a background task.
package struct IncomingTask: Hashable, Sendable {
    /// 1...255 characters of A-Z a-z 0-9 . - _
    package let identifier: String
    package let kind: TaskSubmission.Kind
    /// The earliest start; nil for the time of submission.
    package var earliestBegin: Instant?
    package var details: TaskDetails

    package init(
        identifier: String,
        kind: TaskSubmission.Kind,
        earliestBegin: Instant? = nil,
        details: TaskDetails = TaskDetails()
    ) {
        self.identifier = identifier
        self.kind = kind
        self.earliestBegin = earliestBegin
        self.details = details
    }
}

/// The details of a request, which the policy does not use: the texts of a continued task for its user, the resources
/// that it needs from a worker, and its trace.
package struct TaskDetails: Hashable, Sendable {
    /// At most 256 bytes.
    package var title: String?
    /// At most 256 bytes.
    package var subtitle: String?
    /// The resources that a stream must offer to receive the request.
    package var resources: [String]
    /// The trace in the form of `PushTrace`; empty when there is none.
    package var trace: [UInt8]

    package init(title: String? = nil, subtitle: String? = nil, resources: [String] = [], trace: [UInt8] = []) {
        self.title = title
        self.subtitle = subtitle
        self.resources = resources
        self.trace = trace
    }
}

/// The progress of a continued task.
package struct TaskProgress: Hashable, Sendable {
    package var completed: UInt64
    package var total: UInt64
    package var title: String?
    package var subtitle: String?

    package init(completed: UInt64, total: UInt64, title: String? = nil, subtitle: String? = nil) {
        self.completed = completed
        self.total = total
        self.title = title
        self.subtitle = subtitle
    }
}

/// The state from which a relaunched continued task resumes.
package enum TaskResumption: Hashable, Sendable {
    /// No earlier launch reported progress.
    case noProgress
    /// The last reported progress.
    case progress(TaskProgress)
}

/// The result of an accepted submission.
package enum TaskDisposition: String, CaseIterable, Sendable {
    case launched, scheduled, replaced
}

/// The reason why a submission, or finished transfers, were not accepted.
package enum TaskRejection: Error, Hashable, Sendable {
    /// The launch policy refused the request.
    case policy(TaskRefusal)
    /// The device already has the maximum of eight sessions.
    case tooManySessions
    /// A limit of the gateway is reached.
    case bound(EngineLimit)
}

/// The decision to accept or refuse a push for a token.
package enum Admission: Hashable, Sendable {
    case device(DeviceIndex)
    /// The push would register the token if it were real (dry runs only). The topic is nil if it is new as well.
    case newDevice(TopicIndex?)
    case refused(Refusal)
}

/// The reason why a push is refused.
package enum Refusal: Error, Hashable, Sendable {
    /// The token was never registered.
    case unknown
    /// The token was removed at this time.
    case unregistered(Instant)
    /// The token belongs to another topic.
    case otherTopic
    /// The gateway has its maximum number of devices.
    case tooManyDevices
    /// The topic has its maximum number of devices.
    case tooManyDevicesOfTopic
    /// The topic is new, and the gateway has its maximum number of topics.
    case tooManyTopics
    /// Pending pushes of all topics use all of the memory allowed for them.
    case noMemory
    /// Pending pushes of the topic use all of the memory allowed for one topic.
    case noMemoryForTopic
    /// The device has reached its push rate until this time.
    case tooMany(until: Instant)
}
