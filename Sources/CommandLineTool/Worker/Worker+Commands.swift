import Glibc

// The commands of a worker: one for each wake, at most as many as there are slots.
extension Worker {
    func wakeReceived(_ wake: WakeEvent) {
        // Wakes that are not started end as lost with the stream, and launch elsewhere.
        guard self.takesWakes else { return }
        self.waiting.append(wake)
        self.startWaiting()
    }

    func wakeExpired(_ wake: String) {
        self.waiting.removeAll { $0.wake == wake }
        for (pid, job) in self.jobs where job.wake == wake {
            self.log("wake \(wake) has expired; its command is told to stop")
            self.stop(pid)
        }
    }

    private func startWaiting() {
        while self.jobs.count < self.settings.slots, !self.waiting.isEmpty { self.start(self.waiting.removeFirst()) }
    }

    private func start(_ wake: WakeEvent) {
        let process = CommandProcess(
            self.settings.command,
            environment: wake.environment,
            input: wake.payload,
            isCaptured: self.settings.isOutputLogged,
            guardedBy: self.commandGuard
        )
        guard let process else {
            self.log("\(self.settings.command[0]) cannot be started: \(StateFolder.reason(errno))")
            return self.report(.failed, of: wake.wake)
        }
        let lines = CommandProcess.outputEnds.map { _ in OutputLines(prefix: wake.wake) }
        self.jobs[process.pid] = Job(process: process, wake: wake.wake, lines: lines)
    }

    /// SIGTERM now, SIGKILL after a while.
    func stop(_ pid: Int32) {
        guard let job = self.jobs[pid], job.killAt == nil else { return }
        job.process.signal(SIGTERM)
        self.jobs[pid]?.killAt = Monotonic.milliseconds + Self.killDelayMilliseconds
    }

    /// Gives a command more of its input, and takes a part of its output: a loud command leaves time for the others.
    func exchange(with pid: Int32) {
        guard var job = self.jobs[pid] else { return }
        job.process.writeInput()
        for index in CommandProcess.outputEnds.indices { _ = self.takeOutput(index, of: &job) }
        self.jobs[pid] = job
    }

    /// Reads one output of a command once; whether there was anything.
    private func takeOutput(_ index: Int, of job: inout Job) -> Bool {
        let bytes = job.process.read(CommandProcess.outputEnds[index], into: &self.buffer)
        let now = Monotonic.milliseconds
        for line in job.lines[index].received(bytes) { self.logs[index].append(line, now: now) }
        return !bytes.isEmpty
    }

    /// A command, or the guard of all, has ended.
    func childEnded(_ pid: Int32) throws(CommandFailure) {
        guard var job = self.jobs.removeValue(forKey: pid) else {
            _ = CommandProcess.reap(pid)
            guard pid == self.commandGuard.pid else { return }
            self.log("the process that guards the commands was ended by somebody; another is started")
            return try self.commandGuard.restart(knowing: self.jobs.keys)
        }
        // What the command left running in its group has no wake to work for. The group's number stays its own until
        // the command is reaped, so nobody else is hit.
        job.process.signal(SIGKILL)
        self.commandGuard.forget(pid)
        let result = self.ending(of: pid, job.wake)
        self.takeLastOutput(of: &job)
        job.process.closeAll()
        self.lastEndAt = Monotonic.milliseconds
        self.report(result, of: job.wake)
        self.startWaiting()
    }

    private func ending(of pid: Int32, _ wake: String) -> WakeResult {
        let exitStatus = CommandProcess.reap(pid)
        let result = WakeResult(exitStatus: exitStatus)
        if result == .failed {
            let how = exitStatus.map { "exit status \($0)" } ?? "a signal"
            self.log("the command of wake \(wake) ended with \(how)")
        }
        return result
    }

    /// What the pipes still hold; what a process that left the group writes later is not waited for.
    private func takeLastOutput(of job: inout Job) {
        for index in CommandProcess.outputEnds.indices {
            // A pipe holds 64 KiB, unless the command has asked for more: at most a megabyte without being root.
            for _ in 0..<16 where self.takeOutput(index, of: &job) {}
            if let line = job.lines[index].ended() { self.logs[index].append(line, now: Monotonic.milliseconds) }
        }
    }
}
