import Policy
import Wire

/// What is done of a device that has more than its `DeviceState`: its lanes decide.
extension EmbeddedEngine {
    func parameters(of device: DeviceIndex) -> Parameters { self.parameters(self.devices[device].topic) }

    /// Everything that the policy keeps of a device.
    func lanes(_ device: DeviceIndex) -> DeviceLanes {
        let record = self.devices[device]
        guard record.hasTasks, let row = self.tasks[device] else { return DeviceLanes(device: record.state) }
        return DeviceLanes(device: record.state, tasks: row.policy)
    }

    /// Changes what the policy keeps of a device: `alone` where that is its state, `lanes` where there is more.
    @inline(__always)
    func change<Result>(
        _ device: DeviceIndex,
        _ alone: (inout DeviceState) -> Result,
        lanes: (inout DeviceLanes) -> Result
    ) -> Result {
        guard self.devices[device].hasTasks else { return alone(&self.devices[device].state) }
        return self.changeLanes(device, lanes)
    }

    /// Changes what the policy keeps of a device, which has a row from here on; `derive` lets go of a blank one.
    func changeLanes<Result>(_ device: DeviceIndex, _ body: (inout DeviceLanes) -> Result) -> Result {
        let row = self.tasks.row(device)
        self.devices[device].hasTasks = true
        var lanes = DeviceLanes(device: self.devices[device].state, tasks: row.policy)
        let result = body(&lanes)
        self.devices[device].state = lanes.device
        if row.policy != lanes.tasks {
            row.policy = lanes.tasks
            self.tasks.noteChange(device, row)
        }
        return result
    }

    /// Whether no push, refresh or session of the device can launch, since one is in flight.
    package func isShortLaneFull(_ device: DeviceIndex) -> Bool {
        if self.devices[device].state.inFlight != nil { return true }
        guard self.devices[device].hasTasks else { return false }
        return self.lanes(device).isFull(.short, self.parameters(of: device))
    }

    /// Ends and expires what is due of one device, then brings everything that is derived up to date.
    func settleLanes(_ device: DeviceIndex) {
        let parameters = self.parameters(of: device)
        while true {
            let record = self.devices[device]
            switch self.changeLanes(device, { $0.timePassed(self.now, parameters) }) {
            case .nothing:
                self.reconcile(device)
                return
            case .pushExpired(let action):
                let wake = record.wake
                self.noteEnd(device, record, .expired, action)
                self.wakes.expired(wake, .deadline)
            case .taskExpired(let wake, let action):
                let ended = self.noteTaskEnd(device, wake, .expired, action)
                self.wakes.expired(ended, wake.task.kind == .continued ? .progress : .deadline)
            case .pendingExpired(let push): self.discard(push, .expired, device)
            }
        }
    }

    /// Brings gauges, queues and due index up to date, and lets go of a row that has nothing to keep any more.
    func deriveLanes(_ device: DeviceIndex) {
        guard let row = self.tasks[device] else { preconditionFailure("a device with tasks has a row") }
        let record = self.devices[device]
        let parameters = self.parameters(record.topic)
        let lanes = DeviceLanes(device: record.state, tasks: row.policy)
        self.deriveReadyTasks(device, row, lanes.launchableTasks(at: self.now, parameters))
        row.tidy()
        let gauges = row.gauges(lanes, at: self.now, parameters)
        if gauges != row.counted {
            self.count(record.topic) { $0.change(from: row.counted, to: gauges) }
            self.taskMemory.change(by: gauges.bytes - row.counted.bytes, record.topic)
            row.counted = gauges
        }
        let isReady = lanes.isPushLaunchable(at: self.now, parameters)
        self.derivePush(device, record.state, parameters, isReady: isReady)
        self.schedule.set(device, to: lanes.nextMoment(beside: self.now, parameters))
        guard row.isBlank else { return }
        self.tasks.remove(device)
        self.devices[device].hasTasks = false
    }

    /// - Parameter tasks: what may launch now, a free slot provided, by arrival.
    private func deriveReadyTasks(_ device: DeviceIndex, _ row: TaskRow, _ tasks: [BackgroundTask]) {
        let since = self.schedule.momentBeingDone ?? self.now
        var ready: [TaskRow.Ready] = []
        for task in tasks {
            if let known = row.readySince(task.arrival) {
                ready.append((task.arrival, known))
                continue
            }
            ready.append((task.arrival, since))
            self.readyTasks.append(
                ReadyTask(
                    device: device,
                    topic: self.devices[device].topic,
                    target: row.target(task),
                    since: since,
                    arrival: task.arrival
                )
            )
        }
        row.ready = ready
    }
}

extension Books {
    /// What a device has that waits, is in flight or is held is not `before` any more.
    fileprivate mutating func change(from before: TaskGauges, to after: TaskGauges) {
        for kind in TaskKind.requestable {
            self.requests.waiting[kind] += after.waiting[kind] - before.waiting[kind]
            self.requests.inFlight[kind] += after.inFlight[kind] - before.inFlight[kind]
        }
        self.sessions.waiting += after.transfersWaiting - before.transfersWaiting
        self.sessions.inFlight += after.transfersInFlight - before.transfersInFlight
        self.sessions.wakes += after.sessionWakes - before.sessionWakes
        self.requests.held += after.held
        self.requests.held -= before.held
    }
}
