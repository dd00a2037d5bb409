"""Gateways on one database: what leaves before it is durable, what a doubt comes to, who is dead, who claims."""

from mutations.mutation import Mutation

CLUSTER = "Sources/Gateway/EngineRoom/Cluster"
ENGINE = f"{CLUSTER}/SharedGatewayEngine.swift"
REPLIES = f"{CLUSTER}/SharedGatewayEngine+Replies.swift"
PAUSES = f"{CLUSTER}/SharedGatewayEngine+Pauses.swift"
PAUSED = r"GatewayEngineTests\.PauseContractTests"
DESK = f"{CLUSTER}/TransactionDesk.swift"
# Three production gateways in virtual time, on a database that fails in every way it can.
SIMULATION = r"GatewayEngineTests\.ClusterSimulationTests"
EXAMPLES = r"GatewayEngineTests\.SharedGatewayEngineTests"
BUNDLES = r"PostgresStoreTests\.HistoryTablesTests"

MUTATIONS = [
    Mutation(
        "cluster.pause-before-durable",
        "a topic is paused on every gateway before anybody is told so",
        PAUSES,
        "        self.apply(topic, isPaused)\n",
        "",
        PAUSED,
    ),
    Mutation(
        "cluster.resumed",
        "what has waited is claimed when its topic is resumed",
        PAUSES,
        "        self.claims.heard(topic)\n",
        "",
        PAUSED,
    ),
    Mutation(
        "cluster.released-before-commit",
        "a 200 and a wake leave only when their transaction is durable",
        REPLIES,
        "            self.store.submit(.commit(number, writes))\n",
        "            self.store.submit(.commit(number, writes))\n            self.letOut(transaction)\n",
        SIMULATION,
    ),
    Mutation(
        "cluster.refused-as-durable",
        "a commit that was in doubt and has not happened is told to nobody",
        REPLIES,
        "        guard case .conflict = failure, transaction.isRepeated",
        "        if case .refused = failure { return self.done(transaction, endedElsewhere: []) }\n"
        "        guard case .conflict = failure, transaction.isRepeated",
        SIMULATION,
    ),
    Mutation(
        "cluster.answers-of-the-undone",
        "a transaction that begins again answers once",
        DESK,
        "        transaction.group.discard()\n",
        "",
        SIMULATION,
    ),
    Mutation(
        "cluster.slots-of-the-undone",
        "a transaction that did not happen takes no slot",
        DESK,
        "        return self.dispatcher.undo(step.streams)\n",
        "        return []\n",
        SIMULATION,
    ),
    Mutation(
        "cluster.wakes-of-the-fenced",
        "a gateway that was taken for dead tells its workers that their wakes are lost",
        REPLIES,
        "        self.dispatcher.expireEveryWake()\n",
        "",
        SIMULATION,
    ),
    Mutation(
        "cluster.wakes-of-the-dead",
        "a dead gateway's wakes are lost, and their attempts taken back",
        DESK,
        "            self.dispatcher.loseForGood(loaded.heldWakes)\n",
        "",
        SIMULATION,
    ),
    Mutation(
        "cluster.buried-early",
        "a gateway is buried when it has no wakes left",
        REPLIES,
        "            let isOver = moment != nil && step.rowCount == 0\n",
        "            let isOver = step.rowCount == 0\n",
        SIMULATION,
    ),
    Mutation(
        "cluster.claims-by-notice-alone",
        "what waits for a slot is claimed though the notice of it was lost",
        REPLIES,
        "        for (topic, _) in view.ready { self.heardReady(topic) }\n",
        "",
        SIMULATION,
    ),
    Mutation(
        "cluster.unknown-topic",
        "what waits of a topic that is not known here yet harms nobody",
        REPLIES,
        "        if Int(topic.rawValue) < self.engine.topicCount { self.claims.heard(topic) }\n",
        "        self.claims.heard(topic)\n",
        EXAMPLES,
    ),
    Mutation(
        "cluster.value-while-attaching",
        "what is told while a gateway attaches is younger than what the attachment says",
        REPLIES,
        "            self.attachment?.values[name] = content\n",
        "",
        EXAMPLES,
    ),
    Mutation(
        "cluster.topic-of-another",
        "a row of a topic that another gateway has just made is taken once topics are read",
        DESK,
        "            return .needsTopics([])\n",
        "            return .unreadable(error)\n",
        EXAMPLES,
    ),
    Mutation(
        "cluster.bundles-beside-older",
        "events are not bundled while a gateway is attached that reads no bundles",
        "Sources/Drivers/PostgresStore/CommitLink.swift",
        "mayBundle: loaded.oldest >= EventTables.bundlesFrom\n",
        "mayBundle: true\n",
        BUNDLES,
    ),
    Mutation(
        "cluster.bundles-unfiltered",
        "a bundle's filter holds each device that it tells of",
        "Sources/Drivers/PostgresStore/EventBundle.swift",
        "            self.keys.append(Self.key(device: event.device))\n",
        "",
        BUNDLES,
    ),
    Mutation(
        "cluster.slots-by-notice-alone",
        "a slot comes free though the notice was lost that its wake has ended",
        ENGINE,
        "        self.overdueWakes = self.held.overdue(at: self.clock.now, countMax: Claims.countMax)\n",
        "",
        SIMULATION,
    ),
    Mutation(
        "cluster.policy-time",
        "policy time does not go back with the clock of another primary",
        DESK,
        "        self.engine.beginSharedStep(now: loaded.now, deviceCount: deviceCount)\n",
        "        self.engine.beginSharedStep(\n"
        "            now: Instant(milliseconds: loaded.wall),\n"
        "            deviceCount: deviceCount\n"
        "        )\n",
        SIMULATION,
    ),
    Mutation(
        "cluster.refused-when-detached",
        "whoever waits when the database is gone is refused",
        REPLIES,
        "        self.desk.refuse(self.queue.takeAll(), workspace)\n",
        "        _ = (self.queue.takeAll(), workspace)\n",
        SIMULATION,
    ),
    Mutation(
        "cluster.claims-end",
        "a claim that has ended makes room for the next",
        f"{CLUSTER}/Claims.swift",
        "        let heard = self.end(shape, slots, again: again)\n        self.topics.insert(shape.topic)\n",
        "        let heard: UInt64? = 0\n        self.topics.insert(shape.topic)\n",
        SIMULATION,
    ),
    Mutation(
        "cluster.attempts-of-the-dead",
        "a wake that is lost with its gateway is no attempt",
        "Sources/Engines/DeviceEngine/EmbeddedEngine+Shared.swift",
        "                case .push: self.losePush(device, takingBackAttempt: true)\n",
        "                case .push: self.losePush(device, takingBackAttempt: false)\n",
        SIMULATION,
    ),
    Mutation(
        "cluster.lateness-of-the-undone",
        "a launch that did not happen is not counted as one that was waited for",
        DESK,
        "        if let times = step.times { self.engine.times.takeBack(from: times.before, to: times.after) }\n",
        "",
        EXAMPLES,
    ),
    Mutation(
        "cluster.late-answer",
        "a stream that stalled goes on when its wake is answered late at another gateway",
        REPLIES,
        "        case .answeredLate(let wake): self.endedElsewhere(wake, nil)\n",
        "        case .answeredLate: ()\n",
        EXAMPLES,
    ),
    Mutation(
        "cluster.silence",
        "a gateway whose commits nobody confirms takes no more pushes",
        ENGINE,
        "        self.isSilent = isSilent\n",
        "",
        EXAMPLES,
    ),
    Mutation(
        "cluster.silence-over",
        "a gateway takes pushes again as soon as a commit is confirmed",
        REPLIES,
        "            if self.isSilent { self.judgeSilence() }\n",
        "",
        EXAMPLES,
    ),
]
