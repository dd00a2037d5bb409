package import Policy
package import Wire

/// Warnings to workers some time before the deadlines of their wakes.
///
/// A warning adds a due time to its device and changes no stored state. Streams remember the deadline of their last
/// warning. The engine of a shared store has no devices, and thus no due times, between steps. `ClusterEngine`
/// remembers the warnings for the wakes of its streams.
extension DeviceEngine {
    /// Returns the time of a wake's warning, and its deadline; nil if the wake is not in flight or `expirationLead` is
    /// 0.
    package func warning(ofWake id: WakeID) -> (at: Instant, deadline: Instant)? {
        guard let device = self.wakes.device(of: id), let launch = self.inFlight(id, device) else { return nil }
        return Self.warning(launch.kind, launch.deadline, self.parameters(of: device))
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

    /// Returns the next due time of a device without tasks: the time of a warning, or `next` if that is earlier. `next`
    /// is the due time by the policy. If the warning is due now, the wake joins `WakeLedger.expiring`.
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

    /// Returns the next due time of a device: the earliest time of a warning, or `next` if that is earlier. `next` is
    /// the due time by the policy. Wakes whose warning is due now join `WakeLedger.expiring`.
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
        if warning.deadline > self.now { self.wakes.expiring.append((wake, warning.deadline)) }
        return next
    }

    /// Warns the workers of a device until nothing is due, or an event of another kind is.
    func warnIfDue(_ device: DeviceIndex) {
        while let moment = self.schedule[device], moment <= self.now, self.warn(device, at: moment) {}
    }

    /// Warns the workers of a device if nothing else was due at `moment`. Changes only the device's next due time.
    ///
    /// - Returns: false if another kind of event may be due; no worker was warned.
    func warn(_ device: DeviceIndex, at moment: Instant) -> Bool {
        guard self.shared == nil else { return false }
        let (state, parameters) = (self.devices[device].state, self.parameters(of: device))
        let row = self.devices[device].hasTasks ? self.tasks[device] : nil
        func isWarning(_ kind: LaunchKind, _ deadline: Instant) -> Bool {
            Self.warning(kind, deadline, parameters)?.at == moment
        }
        guard
            state.inFlight.map({ isWarning(.push, $0.deadline) }) ?? false
                || row?.policy.inFlight.contains(where: { isWarning(LaunchKind($0.task.kind), $0.deadline) }) ?? false
        else { return false }
        guard let row else {
            guard let next = state.nextMoment(parameters), next > moment else { return false }
            self.schedule.set(device, to: self.warning(device, state, parameters, before: next))
            return true
        }
        // Use the instant before `moment`: a task that becomes launchable at `moment` is then still due.
        let next = self.lanes(device).nextMoment(beside: moment - 1, parameters)
        guard let next, next > moment else { return false }
        self.schedule.set(device, to: self.warning(device, row, parameters, before: next))
        return true
    }
}
