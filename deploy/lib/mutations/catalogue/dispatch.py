"""Who gets which wake: slots, turns, streams that name devices, and work that a step may do."""

from mutations.mutation import Mutation

PAIRING = "Sources/Engines/WakeDispatch/Dispatcher+Pairing.swift"
STEPS = "Sources/Engines/WakeDispatch/Dispatcher+Steps.swift"
STREAM_VERBS = "Sources/Engines/WakeDispatch/Dispatcher+Streams.swift"
WAKE_VERBS = "Sources/Engines/WakeDispatch/Dispatcher+Wakes.swift"
WAITING = "Sources/Engines/WakeDispatch/WaitingTasks.swift"
TREE = "Sources/Engines/WakeDispatch/TaskTree.swift"
ROTATIONS = "Sources/Engines/WakeDispatch/TaskRotations.swift"
CONDITIONS = "Sources/Engines/WakeDispatch/ConditionsLog.swift"
TASKS = r"WakeDispatchTests\.(TaskPairingTests|TaskFairnessTests|TaskDispatchTests|TaskWakeTests)"
STREAMS = "Sources/Engines/WakeDispatch/StreamTable.swift"
ENDED = "Sources/Engines/WakeDispatch/EndedStreams.swift"
PAUSES = "Sources/Engines/WakeDispatch/Dispatcher+Pauses.swift"
SUBSCRIPTION = "Sources/Engines/WakeDispatch/Subscription.swift"
WORKERS = "Sources/Engines/WakeDispatch/TopicWorkers.swift"
SIMULATION = r"WakeDispatchTests\.SimulationTests"
ALL = r"WakeDispatchTests\."

MUTATIONS = [
    Mutation(
        "dispatch.freed-slot",
        "a slot that a result has freed goes to a device that waits",
        WAKE_VERBS,
        "            self.streams.answered(subscription)\n            self.slotFreed(subscription)\n",
        "            self.streams.answered(subscription)\n            self.endIfDrained(subscription)\n",
        SIMULATION,
    ),
    Mutation(
        "dispatch.expired-slot",
        "a slot that an expired wake has freed goes to a device that waits",
        STEPS,
        "        if subscription.request.stallsWhenSilent, kind?.lane == .short { "
        "self.streams.expired(wake, subscription) }\n"
        "        self.slotFreed(subscription)\n",
        "        if subscription.request.stallsWhenSilent, kind?.lane == .short { "
        "self.streams.expired(wake, subscription) }\n"
        "        self.endIfDrained(subscription)\n",
        SIMULATION,
    ),
    Mutation(
        "dispatch.new-stream",
        "a new stream gets what waits",
        STREAM_VERBS,
        "self.freed.append(self.streams.insert(address, topic, request))",
        "_ = self.streams.insert(address, topic, request)",
        SIMULATION,
    ),
    Mutation(
        "dispatch.slots",
        "a stream holds no more wakes than it has slots",
        SUBSCRIPTION,
        "self.wakes.count + self.releasesOfOpenSteps < self.slots",
        "self.wakes.count + self.releasesOfOpenSteps <= self.slots",
        SIMULATION,
    ),
    Mutation(
        "dispatch.paused",
        "a stream whose peer does not read is sent nothing",
        SUBSCRIPTION,
        "!self.hasEnded && !self.isDraining && !self.isPaused && !self.isStalled",
        "!self.hasEnded && !self.isDraining && !self.isStalled",
        ALL,
    ),
    Mutation(
        "dispatch.draining",
        "a stream whose worker stops is sent nothing new",
        SUBSCRIPTION,
        "!self.hasEnded && !self.isDraining && !self.isPaused && !self.isStalled",
        "!self.hasEnded && !self.isPaused && !self.isStalled",
        SIMULATION,
    ),
    Mutation(
        "dispatch.stalled",
        "a stream that let three wakes expire in a row gets no more until it answers",
        SUBSCRIPTION,
        "self.expiredInARow.count >= Self.expiredInARowMax",
        "self.expiredInARow.count > Self.expiredInARowMax",
        SIMULATION,
    ),
    Mutation(
        "dispatch.bytes",
        "a stream holds only so many bytes of wakes that nobody has answered",
        SUBSCRIPTION,
        "self.bytes >= self.bounds.wakeBytesMax",
        "self.bytes > self.bounds.wakeBytesMax * 2",
        r"WakeDispatchTests\.WakeBytesTests",
    ),
    Mutation(
        "dispatch.kinds",
        "a stream is sent wakes only of the kinds that it asked for",
        SUBSCRIPTION,
        "self.request.takesPushes && self.isFree",
        "self.isFree",
        ALL,
    ),
    Mutation(
        "dispatch.rotation",
        "streams of a topic take turns",
        WORKERS,
        "        self.dropFirst()\n        self.rotateForPushes(subscription)\n    }",
        "        if !subscription.isFree { self.dropFirst() }\n    }",
        r"WakeDispatchTests\.(FairnessTests|StreamTests)",
    ),
    Mutation(
        "dispatch.devices-in-turn",
        "no device that is always due keeps others of its stream waiting",
        SUBSCRIPTION,
        "defer { self.deviceInTurn = (self.deviceInTurn + 1) % self.request.devices.count }",
        "defer { self.deviceInTurn = (self.deviceInTurn + 0) % self.request.devices.count }",
        ALL,
    ),
    Mutation(
        "dispatch.naming-first",
        "a stream that names a device goes before those that do not",
        STREAMS,
        "        if let naming = self.workers[place].naming(device) { return naming }\n"
        "        return self.workers[place].nextInRotation()\n",
        "        if let next = self.workers[place].nextInRotation() { return next }\n"
        "        return self.workers[place].naming(device)\n",
        SIMULATION,
    ),
    Mutation(
        "dispatch.naming-fewest",
        "of several streams that name a device the one with the fewest wakes goes first",
        "Sources/Engines/WakeDispatch/NamingStreams.swift",
        "return wakes != others ? wakes < others : self.number < other.number",
        "return wakes != others ? wakes > others : self.number < other.number",
        ALL,
    ),
    Mutation(
        "dispatch.stream-lost",
        "the wakes of a stream that ended are lost at once, and launched again",
        ENDED,
        "if !stream.wakes.isEmpty { self.streams.append(stream) }",
        "if stream.wakes.isEmpty { self.streams.append(stream) }",
        SIMULATION,
    ),
    Mutation(
        "dispatch.step-bound",
        "one step launches so many wakes and no more",
        STEPS,
        "        self.takeExpiredWakes()\n        guard self.workLeft > 0 else { return false }\n",
        "        self.takeExpiredWakes()\n",
        r"WakeDispatchTests\.StepBoundTests",
    ),
    Mutation(
        "dispatch.at-one-moment",
        "at one moment a launch goes before what comes from outside",
        STEPS,
        "if self.engine.catchUp(device) { self.flow() }",
        "_ = self.engine.catchUp(device)",
        r"WakeDispatchTests\.(AtOneMomentTests|StepBoundTests|ConformanceTests)",
    ),
    Mutation(
        "dispatch.drain",
        "a gateway that ends launches nothing new",
        PAIRING,
        "!self.isDraining && !self.engine.isPaused(topic)",
        "!self.engine.isPaused(topic)",
        r"(WakeDispatchTests|GatewayEngineTests)",
    ),
    Mutation(
        "dispatch.pause",
        "nothing of a paused topic launches by itself",
        PAIRING,
        "!self.isDraining && !self.engine.isPaused(topic)",
        "!self.isDraining",
        SIMULATION,
    ),
    Mutation(
        "dispatch.pause-turns",
        "a person's launch finds a stream of a paused topic that has come free",
        PAIRING,
        "        if subscription.request.devices.isEmpty { self.streams.rotate(subscription) }\n"
        "        guard self.launches(subscription.topic) else { return true }\n",
        "        guard self.launches(subscription.topic) else { return true }\n"
        "        if subscription.request.devices.isEmpty { self.streams.rotate(subscription) }\n",
        SIMULATION,
    ),
    Mutation(
        "dispatch.resume",
        "what has waited launches when its topic is resumed",
        PAUSES,
        "{ self.freed.append(stream) }",
        "{ _ = stream }",
        SIMULATION,
    ),
    Mutation(
        "dispatch.extension-scope",
        "a stream is drained only for a caller who reaches its topic",
        STREAM_VERBS,
        "guard let subscription = self.streams[address], isAdmitted(subscription.topic) else { return false }",
        "guard let subscription = self.streams[address] else { return false }",
        r"GatewayEngineTests\.DeviceContractTests",
    ),
    Mutation(
        "dispatch.task-lane-stall",
        "only wakes of the short lane stall a stream",
        STEPS,
        "subscription.request.stallsWhenSilent, kind?.lane == .short {",
        "subscription.request.stallsWhenSilent {",
        TASKS,
    ),
    Mutation(
        "dispatch.task-order",
        "of the tasks that a stream takes the first comer goes first",
        TREE,
        "func consider(_ node: Node) { if node != Self.none, self.isBefore(node, best) { best = node } }",
        "func consider(_ node: Node) { if node != Self.none, self.isBefore(best, node) { best = node } }",
        TASKS,
    ),
    Mutation(
        "dispatch.task-sweep",
        "what no longer waits takes no memory",
        WAITING,
        "        for _ in 0..<Self.looksPerTask { self.sweep(isReady) }\n",
        "",
        TASKS,
    ),
    Mutation(
        "dispatch.task-turns",
        "streams that take a task have turns",
        ROTATIONS,
        "            self.dropFirst(rotation)\n            if stream.isFree { self.append(stream, place) }\n",
        "            if !stream.isFree { self.dropFirst(rotation) }\n",
        TASKS,
    ),
    Mutation(
        "dispatch.task-needs",
        "a task that needs resources goes where all of them are",
        SUBSCRIPTION,
        "            ResourceNames.isSatisfied(target.resources, by: self.resources)\n                && ",
        "            ",
        TASKS,
    ),
    Mutation(
        "dispatch.longest",
        "a push goes before a task only if it has waited as long",
        PAIRING,
        "if let pushSince, pushSince <= task.since { break }",
        "if pushSince != nil { break }",
        TASKS,
    ),
    Mutation(
        "dispatch.named-lanes",
        "a stream that names a device gets what waits in each of its lanes",
        PAIRING,
        "devicesLeft = isLaunched ? subscription.request.devices.count : devicesLeft - 1",
        "devicesLeft -= 1",
        TASKS,
    ),
    Mutation(
        "dispatch.conditions-paused",
        "a stream whose peer did not read hears of what changed meanwhile",
        CONDITIONS,
        "if stream.hearing.heard < self.lastNumber { self.laggards += 1 }",
        "",
        r"WakeDispatchTests\.ConditionStreamTests",
    ),
]
