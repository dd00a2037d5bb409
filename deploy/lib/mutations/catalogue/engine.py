"""The engine of devices: its books, its memory of what was answered, and what it keeps of a device."""

from mutations.mutation import Mutation

PUSHES = "Sources/Engines/DeviceEngine/EmbeddedEngine+Pushes.swift"
STEPS = "Sources/Engines/DeviceEngine/EmbeddedEngine+Steps.swift"
WAKES = "Sources/Engines/DeviceEngine/EmbeddedEngine+Wakes.swift"
TASK_TABLE = "Sources/Engines/DeviceEngine/TaskTable.swift"
PAUSES = "Sources/Engines/DeviceEngine/EmbeddedEngine+Pauses.swift"
STATE = "Sources/Pure/LaunchPolicy/DeviceState.swift"
TOPIC = "Sources/Engines/DeviceEngine/Topic+Stored.swift"
RECORD = "Sources/Engines/DeviceEngine/DeviceRecord+Stored.swift"
SIMULATION = r"WakeDispatchTests\.SimulationTests"
# Lives on a disk, which end at any moment.
CRASHES = r"WakeDispatchTests\.CrashSimulationTests"

MUTATIONS = [
    Mutation(
        "engine.pause-kept",
        "a topic that is paused is so after a restart",
        TOPIC,
        "if self.isPaused { buffer.append(Self.pausedCode) }",
        "",
        r"(DeviceEngineTests\.TopicTableTests|GatewayEngineTests\.PauseContractTests)",
    ),
    Mutation(
        "engine.progress-kept",
        "what a task tells is stored within the second, though nothing else changes",
        TASK_TABLE,
        "!self.changed.isEmpty || self.progressDue.map { $0 <= now } ?? false",
        "!self.changed.isEmpty",
        r"(DeviceEngineTests\.ToldProgressTests|GatewayEngineTests\.TaskDurabilityContractTests)",
    ),
    Mutation(
        "engine.dropped",
        "a push that was dropped has ended, and is counted so",
        PAUSES,
        "        self.discard(push, .cancelled, device)\n",
        "",
        SIMULATION,
    ),
    Mutation(
        "engine.dropped-waits",
        "a push that was dropped is launched no more",
        STATE,
        "        defer { self.pending = nil }\n        return self.pending?.handle\n    }\n}\n",
        "        return self.pending?.handle\n    }\n}\n",
        SIMULATION,
    ),
    Mutation(
        "engine.books-accepted",
        "every accepted push is counted once",
        PUSHES,
        "self.count(topic) { $0.accepted += 1 }",
        "self.count(topic) { $0.accepted += 2 }",
        SIMULATION,
    ),
    Mutation(
        "engine.books-coalesced",
        "a push that was coalesced into another has ended, and is counted so",
        PUSHES,
        "self.count(topic) { $0.coalesced += 1 }",
        "self.count(topic) { $0.coalesced += 0 }",
        SIMULATION,
    ),
    Mutation(
        "engine.books-discarded",
        "a discarded push is counted once, under its reason",
        STEPS,
        "self.count(self.devices[device].topic) { $0.discarded[reason] += 1 }",
        "self.count(self.devices[device].topic) { $0.discarded[reason] += 2 }",
        SIMULATION,
    ),
    Mutation(
        "engine.one-outcome",
        "a result that comes again is told from a new one, and changes nothing",
        WAKES,
        "return before == outcome ? .repeated : .endedOtherwise(before)",
        "return before == outcome ? .ended : .endedOtherwise(before)",
        SIMULATION,
    ),
    Mutation(
        "engine.deadline-first",
        "at one moment a deadline goes before an outcome",
        WAKES,
        "if let deadline = record.state.inFlight?.deadline, deadline <= self.now { self.settle(device) }",
        "if let deadline = record.state.inFlight?.deadline, deadline < self.now { self.settle(device) }",
        r"(WakeDispatchTests|DeviceEngineTests)\.",
    ),
    Mutation(
        "engine.waiting-expires",
        "a push expires that waits for a worker which never comes",
        STEPS,
        "self.schedule.set(device, to: isReady ? state.pending?.expiry : state.nextMoment(parameters))",
        "self.schedule.set(device, to: isReady ? nil : state.nextMoment(parameters))",
        SIMULATION,
    ),
    Mutation(
        "engine.wakes-by-themselves",
        "a device that waits for its interval launches when that has passed",
        STEPS,
        "self.schedule.set(device, to: isReady ? state.pending?.expiry : state.nextMoment(parameters))",
        "self.schedule.set(device, to: isReady ? state.pending?.expiry : state.inFlight?.deadline)",
        SIMULATION,
    ),
    Mutation(
        "engine.longest-first",
        "the device that has waited longest for a slot is first",
        "Sources/Engines/DeviceEngine/ReadyQueues.swift",
        "let first = self.queues[Int(topic.rawValue)].first\n",
        "let first = self.queues[Int(topic.rawValue)].last\n",
        r"WakeDispatchTests\.",
    ),
    Mutation(
        "engine.memory",
        "the memory of a push that was completed is free again",
        WAKES,
        "if let content = PushContent(push) { self.memory.letGo(content, before.topic) }",
        "if push == .none, let content = PushContent(push) { self.memory.letGo(content, before.topic) }",
        r"(WakeDispatchTests\.SimulationTests|DeviceEngineTests)",
    ),
    Mutation(
        "engine.repeated-push",
        "a push that comes again under its apns-id is answered as before, and counted once",
        "Sources/Engines/DeviceEngine/AnsweredPush.swift",
        "return answered.last { $0.apnsID == push.apnsID && $0.at > horizon }?.answer",
        "return answered.last { $0.apnsID == push.apnsID && $0.at < horizon }?.answer",
        SIMULATION,
    ),
    Mutation(
        "engine.repeated-push-after-crash",
        "an answer is remembered in the commit of its push",
        RECORD,
        "let answered = self.answeredPushes.value?.count { $0.at > pushesAfter } ?? 0",
        "let answered = self.answeredPushes.value?.count { $0.at > pushesAfter && $0.at > now } ?? 0",
        CRASHES,
    ),
    Mutation(
        "engine.record-penalty",
        "a penalty outlives the process",
        RECORD,
        "buffer.append(state.penalty)",
        "buffer.append(min(state.penalty, 0))",
        CRASHES,
    ),
    Mutation(
        "engine.record-spacing",
        "what launches have cost outlives the process",
        RECORD,
        "buffer.appendLittleEndian(spacing.windowCount)",
        "buffer.appendLittleEndian(min(spacing.windowCount, 1))",
        CRASHES,
    ),
    Mutation(
        "engine.record-conditions",
        "what a device has reported outlives the process",
        RECORD,
        "(conditions.charging ? 1 : 0) | (conditions.lowPowerMode ? 2 : 0) | (conditions.network ? 4 : 0)",
        "(conditions.charging ? 1 : 0) | (conditions.network ? 4 : 0)",
        CRASHES,
    ),
    Mutation(
        "engine.record-ended-wakes",
        "a result is known that is reported again after a restart",
        RECORD,
        "let ended = self.endedWakes?.count { $0.at > wakesAfter } ?? 0",
        "let ended = self.endedWakes?.count { $0.at > wakesAfter && $0.at > now } ?? 0",
        CRASHES,
    ),
    Mutation(
        "engine.record-attempts",
        "how often a push was launched outlives the process",
        RECORD,
        "buffer.appendLittleEndian(push.attempts)",
        "buffer.appendLittleEndian(min(push.attempts, 1))",
        CRASHES,
    ),
    Mutation(
        "engine.changes-are-kept",
        "whatever changes of a device is in the next commit",
        STEPS,
        "        self.derive(device)\n        self.devices.noteChange(device)\n",
        "        self.derive(device)\n"
        "        if self.devices[device].isPending { self.devices.noteChange(device) }\n",
        CRASHES,
    ),
    Mutation(
        "engine.lost-attempt",
        "a launch that a restart made void does not count as an attempt",
        "Sources/Engines/DeviceEngine/EmbeddedEngine+Records.swift",
        "self.losePush(device, takingBackAttempt: true)",
        "self.losePush(device, takingBackAttempt: false)",
        r"(WakeDispatchTests\.CrashSimulationTests|"
        r"DeviceEngineTests\.RestoreTests|GatewayEngineTests\.EngineRestartTests)",
    ),
    Mutation(
        "engine.rate",
        "one device takes no more pushes in a while than it is allowed",
        "Sources/Engines/DeviceEngine/PushRate.swift",
        "Int(self.rateWindowCount) >= rate.pushesMax",
        "Int(self.rateWindowCount) > rate.pushesMax",
        r"DeviceEngineTests\.PushRateTests",
    ),
    Mutation(
        "engine.step-bound",
        "one step looks at so many devices and no more",
        "Sources/Engines/DeviceEngine/EmbeddedEngine.swift",
        "        for _ in 0..<devicesMax {\n            guard let device = self.schedule.popDue",
        "        for _ in 0..<max(devicesMax, 1_000_000) {\n"
        "            guard let device = self.schedule.popDue",
        r"(WakeDispatchTests\.StepBoundTests|DeviceEngineTests)",
    ),
    Mutation(
        "engine.wakes-move-up",
        "a wake is found though one before it in the table was taken out",
        "Sources/Engines/DeviceEngine/WakeMap.swift",
        "            if distance >= (place - gap) & mask {\n",
        "            if distance > (place - gap) & mask {\n",
        r"DeviceEngineTests\.WakeMapTests",
    ),
    Mutation(
        "engine.wakes-stay",
        "a wake is moved up no farther than where the search for it begins",
        "Sources/Engines/DeviceEngine/WakeMap.swift",
        "            if distance >= (place - gap) & mask {\n",
        "            if distance >= 0 {\n",
        r"DeviceEngineTests\.WakeMapTests",
    ),
]
