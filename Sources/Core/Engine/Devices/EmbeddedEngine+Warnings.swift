package import Policy
package import Wire

/// Workers are warned some time before the deadlines of their wakes.
///
/// A warning is a moment of its device, in addition to those of the policy, and changes no stored state. The streams
/// keep which deadline a worker was last warned of. The engine of a shared store holds no devices between its steps and
/// has no such moments: `SharedGatewayEngine` keeps them for the wakes of its streams.
extension EmbeddedEngine {
    /// The moment of the warning of a wake in flight, and the deadline; nil for a wake that is not in flight, and if
    /// `expirationLead` is 0.
    package func warning(ofWake id: WakeID) -> (at: Instant, deadline: Instant)? {
        guard let device = self.wakes.device(of: id), let inFlight = self.inFlight(id, device) else { return nil }
        let parameters = self.parameters(of: device)
        switch inFlight {
        case .push: return self.devices[device].state.inFlight.flatMap { Self.warning(.push, $0.deadline, parameters) }
        case .task(let wake): return Self.warning(LaunchKind(wake.task.kind), wake.deadline, parameters)
        }
    }

    @inline(__always)
    private static func warning(
        _ kind: LaunchKind,
        _ deadline: Instant,
        _ parameters: Parameters
    ) -> (at: Instant, deadline: Instant)? {
        let lead = DeviceLanes.expirationLead(kind, parameters)
        return lead > 0 ? (deadline - lead, deadline) : nil
    }

    /// The next moment of a device without tasks, when the policy's is `next`. Notes a wake whose deadline is near.
    @inline(__always)
    func warning(
        _ device: DeviceIndex,
        _ state: DeviceState,
        _ parameters: Parameters,
        before next: Instant?
    ) -> Instant? {
        guard self.shared == nil, let inFlight = state.inFlight,
            let warning = Self.warning(.push, inFlight.deadline, parameters)
        else { return next }
        return self.moment(of: warning, self.devices[device].wake, before: next)
    }

    /// The next moment of a device, when the policy's is `next`. Notes the wakes whose deadlines are near.
    func warning(
        _ device: DeviceIndex,
        _ row: TaskRow,
        _ parameters: Parameters,
        before next: Instant?
    ) -> Instant? {
        guard self.shared == nil else { return next }
        var next = self.warning(device, self.devices[device].state, parameters, before: next)
        for wake in row.policy.inFlight {
            guard let warning = Self.warning(LaunchKind(wake.task.kind), wake.deadline, parameters),
                let flight = row.flight(of: wake.task.arrival)
            else { continue }
            next = self.moment(of: warning, flight.wake, before: next)
        }
        return next
    }

    @inline(__always)
    private func moment(
        of warning: (at: Instant, deadline: Instant),
        _ wake: WakeID,
        before next: Instant?
    ) -> Instant? {
        guard warning.at <= self.now else { return min(next ?? warning.at, warning.at) }
        if warning.deadline > self.now { self.wakes.expiring(wake, deadline: warning.deadline) }
        return next
    }

    /// Warns the workers of a device whose warnings are due, as long as nothing else of it is due before.
    func warnIfDue(_ device: DeviceIndex) {
        while let moment = self.schedule[device], moment <= self.now, self.warn(device, at: moment) {}
    }

    /// Warns the workers of a device, if nothing else of it was due at `moment`: nothing but its next moment follows.
    ///
    /// - Returns: false when something else may be due; nothing was done.
    func warn(_ device: DeviceIndex, at moment: Instant) -> Bool {
        guard self.shared == nil else { return false }
        let parameters = self.parameters(of: device)
        guard self.devices[device].hasTasks, let row = self.tasks[device] else {
            let state = self.devices[device].state
            guard let inFlight = state.inFlight, let next = state.nextMoment(parameters), next > moment,
                Self.warning(.push, inFlight.deadline, parameters)?.at == moment
            else { return false }
            self.schedule.set(device, to: self.warning(device, state, parameters, before: next))
            return true
        }
        // A task that may launch from this very moment on does not wait for a slot a moment before.
        let next = self.lanes(device).nextMoment(beside: moment - 1, parameters)
        guard let next, next > moment, self.isWarning(moment, device, row, parameters) else { return false }
        self.schedule.set(device, to: self.warning(device, row, parameters, before: next))
        return true
    }

    /// Returns true if this is the moment of a warning of one of the device's wakes.
    private func isWarning(
        _ moment: Instant,
        _ device: DeviceIndex,
        _ row: TaskRow,
        _ parameters: Parameters
    ) -> Bool {
        if let inFlight = self.devices[device].state.inFlight,
            Self.warning(.push, inFlight.deadline, parameters)?.at == moment
        {
            return true
        }
        return row.policy.inFlight.contains {
            Self.warning(LaunchKind($0.task.kind), $0.deadline, parameters)?.at == moment
        }
    }
}
