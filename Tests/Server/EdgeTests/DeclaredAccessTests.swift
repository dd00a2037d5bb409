import Gateway
import Testing

@Suite("Whom each operation is for", .timeLimit(.minutes(15)))
struct DeclaredAccessTests {
    /// Every operation: who may ask, what they must reach, and what becomes of it once the store has failed.
    private static let declared = """
        addFaultRule operator everyTopic answered
        alive operator nothing answered
        allTasks operator topicOfSubject answeredFromDurableState
        backUp operator everyTopic answered
        cancelTask worker topicOfSubject refused
        cancelTasks worker topicOfSubject refused
        clearFaultRules operator everyTopic answered
        dashboard anybody nothing answered
        dashboardFile anybody nothing answered
        deviceEvents operator topicOfSubject answeredFromDurableState
        devicePushes operator topicOfSubject answeredFromDurableState
        drainStream worker topicOfSubject refused
        dropPending operator topicOfSubject refused
        events operator everyTopic answered
        explainDevice operator topicOfSubject answeredFromDurableState
        extendWake worker topicOfSubject refused
        faultRules operator everyTopic answered
        listDevices operator topicOfSubject answeredFromDurableState
        listPushes operator everyTopic answered
        listTasks worker topicOfSubject answeredFromDurableState
        live operator everyTopic answered
        metrics operator everyTopic answered
        openAPI operator nothing answered
        pauseTopic operator topicInPath refused
        pendingPush operator topicOfSubject answeredFromDurableState
        push provider topicOfSubject refused
        pushWay operator everyTopic answered
        ready operator nothing answered
        registerDevice worker topicInPath refused
        releaseWake worker topicOfSubject refused
        reload operator everyTopic answered
        removeDevice worker topicOfSubject refused
        removeFaultRule operator everyTopic answered
        replaceFaultRules operator everyTopic answered
        reportConditions worker topicOfSubject refused
        reportProgress worker topicOfSubject refused
        reportResult worker topicOfSubject refused
        resetFaultCounters operator everyTopic answered
        resources worker topicInPath refused
        resumeTopic operator topicInPath refused
        samples operator everyTopic answered
        simulateExpiration operator topicOfSubject refused
        simulateLaunch operator topicOfSubject refused
        simulateTaskExpiration operator topicOfSubject refused
        simulateTaskLaunch operator topicOfSubject refused
        statistics operator everyTopic answeredFromDurableState
        submitTask worker topicOfSubject refused
        subscribe worker topicInPath refused
        testPush operator topicOfSubject refused
        topicStatistics operator topicInPath answeredFromDurableState
        topics operator topicOfSubject answeredFromDurableState
        transfersFinished worker topicOfSubject refused
        version operator nothing answered
        whatIf operator topicOfSubject answeredFromDurableState
        """

    @Test("What is declared is what was decided, operation by operation")
    func table() {
        let found = Operation.all.map { operation in
            let rule = operation.access
            return "\(operation.name) \(rule.role) \(rule.scope) \(operation.afterFailedStore)"
        }
        #expect(found.sorted() == Self.declared.split(separator: "\n").map(String.init))
    }
}
