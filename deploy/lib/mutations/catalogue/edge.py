"""What is declared of operations, whom they admit, and whose share of a loop a push is."""

from mutations.mutation import Mutation

OPERATIONS = "Sources/Gateway/Edge/Operations"
AUTHORIZATION = "Sources/Gateway/Access/Callers/Authorization.swift"
TESTS = (
    r"EdgeTests\.(DeclaredAccessTests|AuthorizationTests|OperationTableTests|OpenAPIDocumentTests|MadeUpOperationTests)"
)

MUTATIONS = [
    Mutation(
        "edge.declared-role",
        "what is an operator's is no worker's",
        f"{OPERATIONS}/Operation+Simulations.swift",
        """        by: .operator,
        reaching: .topicOfSubject,
        answers: [202, 400, 404, 409, 410],""",
        """        by: .worker,
        reaching: .topicOfSubject,
        answers: [202, 400, 404, 409, 410],""",
        TESTS,
    ),
    Mutation(
        "edge.declared-listeners",
        "what is served to operators alone is served on their listener alone",
        f"{OPERATIONS}/Operation+Simulations.swift",
        """        on: .admin,
        by: .operator,
        reaching: .topicOfSubject,
        answers: [202, 400, 404, 409, 410],""",
        """        on: .all,
        by: .operator,
        reaching: .topicOfSubject,
        answers: [202, 400, 404, 409, 410],""",
        TESTS,
    ),
    Mutation(
        "edge.declared-scope",
        "what tells of every topic takes a caller who reaches every topic",
        f"{OPERATIONS}/Operation+Statistics.swift",
        """        reaching: .everyTopic,
        answers: [200],
        afterFailedStore: .answeredFromDurableState""",
        """        reaching: .nothing,
        answers: [200],
        afterFailedStore: .answeredFromDurableState""",
        TESTS,
    ),
    Mutation(
        "edge.declared-scope-of-workers",
        "a worker subscribes to topics of its own alone",
        f"{OPERATIONS}/Operation+Workers.swift",
        """        reaching: .topicInPath,
        answers: [200, 400],
        isStream: true,""",
        """        reaching: .nothing,
        answers: [200, 400],
        isStream: true,""",
        TESTS,
    ),
    Mutation(
        "edge.declared-failure",
        "a removal is refused once the store has failed",
        f"{OPERATIONS}/Operation+Devices.swift",
        """        answers: [204, 400, 404],
        afterFailedStore: .refused""",
        """        answers: [204, 400, 404],
        afterFailedStore: .answered""",
        TESTS,
    ),
    Mutation(
        "edge.role",
        "a worker's token opens nothing of operators",
        AUTHORIZATION,
        "guard rule.role == .worker || caller.role == .operator else { throw .operatorsOnly }",
        "guard rule.role == .worker || caller.role == .operator || proof != nil else { throw .operatorsOnly }",
        TESTS,
    ),
    Mutation(
        "edge.topic",
        "a token of some topics opens no other",
        AUTHORIZATION,
        "guard caller.topics == .all || caller.reaches(topic.string) else { throw proof.foreignTopic }",
        "guard caller.topics != .all || caller.reaches(topic.string) else { throw proof.foreignTopic }",
        TESTS,
    ),
    Mutation(
        "edge.every-topic",
        "a token of some topics does not open what tells of all",
        AUTHORIZATION,
        "guard caller.topics == .all else { throw .everyTopicOnly }",
        "guard caller.topics == .all || proof != nil else { throw .everyTopicOnly }",
        TESTS,
    ),
    Mutation(
        "edge.listener",
        "an operation is found on the listeners that it declares, and on no other",
        f"{OPERATIONS}/OperationTable.swift",
        "for operation in place.operations where operation.listeners.contains(role) {",
        "for operation in place.operations where operation.listeners.contains(role) || role == .edge {",
        TESTS,
    ),
    Mutation(
        "edge.flow-of-topic",
        "a topic has its share of a loop, on however many connections its pushes come",
        "Sources/Gateway/Edge/Handler/PushIntake.swift",
        "        self.loop.setFlow(of: stream.connection, to: self.topicKey.hash(topic))\n",
        "        _ = topic\n",
        r"EdgeTests\.LoopHandlerTests",
    ),
]
