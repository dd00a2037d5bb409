import LaunchPolicy

/// A device of a simulation: what the policy knows of it, and what its worker will do.
struct SimulatedDevice {
    let name: String
    var state = DeviceState()
    /// How often it was launched, which selects the worker's next step.
    var launches = 0
    /// How and when the wake in flight will be answered; nil when it will expire.
    var answer: (answer: WorkerScript.Answer, moment: Instant)?

    /// When something next happens by itself, or nil.
    func nextMoment(_ parameters: Parameters) -> Instant? {
        let moment = self.state.nextMoment(parameters)
        guard let answer = self.answer else { return moment }
        return min(answer.moment, moment ?? .distantFuture)
    }

    /// The state holds a wake that was just launched: decides how it is answered.
    mutating func launched(_ wake: WakeInFlight, _ script: WorkerScript) {
        let step = script.step(self.launches)
        self.launches += 1
        let moment = wake.launchedAt + step.delay
        // An answer on or after the deadline does not count.
        self.answer = step.answer == .none || moment >= wake.deadline ? nil : (step.answer, moment)
    }
}
