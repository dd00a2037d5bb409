import FoundationEssentials
import Wire

extension Operation {
    /// The operations on the fault rules of `wakegate dev`.
    package static let faults: [Operation] = [
        fault("faultRules", .get, "/v1/faults") { _, service in
            OperationAnswer(service.written())
        },
        fault("replaceFaultRules", .put, "/v1/faults") { call, service throws(APIError) in
            let read = try Operation.rules(call.body) { text throws(ConfigurationError) in
                try FaultRuleReader.rules(text, name: "the body")
            }
            service.replace(with: read.rules)
            return OperationAnswer(service.written(warnings: read.warnings))
        },
        fault("addFaultRule", .post, "/v1/faults") { call, service throws(APIError) in
            let read = try Operation.rules(call.body) { text throws(ConfigurationError) in
                try FaultRuleReader.rule(text, name: "the body")
            }
            var writer = JSONWriter()
            writer.beginObject()
            for rule in read.rules {
                writer.member("id", try service.append(rule))
            }
            FaultService.write(read.warnings, to: &writer)
            writer.endObject()
            return OperationAnswer(status: 201, writer.buffer.view.array)
        },
        fault("clearFaultRules", .delete, "/v1/faults") { _, service in
            service.replace(with: [])
            return OperationAnswer(status: 204, [])
        },
        fault("removeFaultRule", .delete, "/v1/faults/{id}") { call, service throws(APIError) in
            try service.remove(call.parameter.string)
            return OperationAnswer(status: 204, [])
        },
        fault("resetFaultCounters", .post, "/v1/faults/reset") { _, service in
            service.resetCounters()
            return OperationAnswer(status: 204, [])
        },
    ]

    /// Creates an operation on fault rules, which apply to every topic. The operation fails if the gateway has no fault
    /// service.
    private static func fault(
        _ name: String,
        _ method: HTTPMethod,
        _ path: PathPattern,
        _ answer: @escaping @Sendable (OperationCall, FaultService) throws(APIError) -> OperationAnswer
    ) -> Operation {
        ofOperators(name, method, path, reaching: .everyTopic, bodyLimit: .faultRules) { call throws(APIError) in
            guard let service = call.services.faults else { throw .noFaultsHere }
            return .answered(try answer(call, service))
        }
    }

    private static func rules(
        _ body: ByteView,
        _ read: (Data) throws(ConfigurationError) -> FaultRuleReader.Rules
    ) throws(APIError) -> FaultRuleReader.Rules {
        do throws(ConfigurationError) {
            return try read(Data(body.array))
        } catch {
            throw .badFaults(error)
        }
    }
}
