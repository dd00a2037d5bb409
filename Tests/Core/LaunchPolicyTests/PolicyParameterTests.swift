import Policy
import Testing

@Suite("Parameters by their names", .timeLimit(.minutes(15)))
struct PolicyParameterTests {
    @Test("Every parameter of pushes and of background tasks is there once, and is found by its name")
    func names() {
        let names = PolicyParameter.all.map(\.name)
        let all = Parameters.Name.allCases.map(\.rawValue) + TaskParameters.Name.allCases.map(\.rawValue)
        #expect(names == all)
        #expect(Set(names).count == names.count)
        for parameter in PolicyParameter.all { #expect(PolicyParameter(parameter.name) == parameter) }
        #expect(PolicyParameter("tasks") == nil)
        #expect(PolicyParameter("processingwindow") == nil)
    }

    @Test("Setting one changes that one alone, and is read back", arguments: PolicyParameter.all)
    func alone(parameter: PolicyParameter) {
        let defaults = Parameters()
        let value = parameter == .launch(.criticalBattery) ? 0.5 : 17
        var parameters = defaults
        #expect(parameter.set(value, in: &parameters))
        for other in PolicyParameter.all {
            #expect(other.value(in: parameters) == (other == parameter ? value : other.value(in: defaults)))
        }
        let before = parameters
        #expect(!parameter.set(-1, in: &parameters))
        #expect(parameters == before)
    }

    @Test("Each says what it must be, and what it is for")
    func words() {
        for parameter in PolicyParameter.all {
            #expect(parameter.requirement.contains("number"))
        }
        #expect(Set(PolicyParameter.all.map(\.summary)).count == PolicyParameter.all.count)
        #expect(PolicyParameter.task(.continuedMax).requirement == "a whole number from 1 to 1000")
        #expect(PolicyParameter.launch(.maxAttempts).summary == "the most launches of one push")
    }
}
