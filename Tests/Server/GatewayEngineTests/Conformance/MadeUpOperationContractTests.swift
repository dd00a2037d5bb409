import Engine
import Gateway
import Platform
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("The contract of an engine: an additional operation", .timeLimit(.minutes(15)))
struct MadeUpOperationContractTests {
    /// The only code that a new operation needs. An operation of the gateway is an element of its family's list, and
    /// must also be in `openapi.json` and in the access table of `DeclaredAccessTests`.
    ///
    /// This operation changes whether a device is charging, and answers with the previous state.
    private static let plug = Operation(
        "plug",
        .post,
        "/v1/devices/{token}/plug",
        on: .all,
        by: .worker,
        reaching: .topicOfSubject,
        afterFailedStore: .refused
    ) { call throws(APIError) in
        .asked(
            EngineWork(changing: try call.device()) { scope, device throws(APIError) in
                let index = try scope.registered(device)
                let wasCharging = scope.engine.conditions(of: index).charging
                var report = ConditionsReport()
                report.charging = !wasCharging
                _ = scope.dispatcher.conditions(report, index)
                return MadeUpOperationContractTests.answer("wasCharging", wasCharging)
            }
        )
    }

    /// Another operation, which only reads.
    private static let plugged = Operation(
        "plugged",
        .get,
        "/v1/devices/{token}/plug",
        on: .all,
        by: .worker,
        reaching: .topicOfSubject,
        afterFailedStore: .answeredFromDurableState
    ) { call throws(APIError) in
        .asked(
            EngineWork(reading: try call.device()) { scope, device in
                MadeUpOperationContractTests.answer("isCharging", scope.engine.conditions(of: device.index).charging)
            }
        )
    }

    private static func answer(_ name: StaticString, _ value: Bool) -> EngineReply {
        .outcome(
            .json { writer in
                writer.beginObject()
                writer.member(name, value)
                writer.endObject()
            }
        )
    }

    @Test("The operation reads and changes a device; its change is stored and reported", arguments: EngineKind.all)
    func readsAndChanges(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask {
            $0.subscribe(1, reportsConditions: true)
            $0.register(2, 1)
        }
        contract.ask {
            $0.act(3, Self.plugged, on: 1)
            $0.act(4, Self.plug, on: 1)
            $0.act(5, Self.plugged, on: 1)
        }
        #expect(contract.text(4) == #"{"wasCharging":false}"#)
        #expect(contract.text(5) == #"{"isCharging":true}"#, "a question sees earlier changes")
        #expect(contract.conditions(1).last?.charging == true)
        if kind.keeps { try contract.restart() }
        contract.ask { $0.act(6, Self.plug, on: 1) }
        #expect(contract.text(6) == #"{"wasCharging":true}"#)
        contract.ask { $0.act(7, Self.plugged, on: 1) }
        #expect(contract.text(7) == #"{"isCharging":false}"#)
        for request in 3...7 { #expect(contract.answerCount(request) == 1, "request \(request)") }
    }

    @Test("After a failed commit the operation behaves as declared", arguments: EngineKind.keepingAlone)
    func failedStore(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { $0.register(1, 1) }
        contract.failNextCommit()
        contract.ask { $0.act(2, Self.plug, on: 1) }
        contract.ask {
            $0.act(3, Self.plug, on: 1)
            $0.act(4, Self.plugged, on: 1)
        }
        for request in 2...3 { #expect(contract.answer(request) == "503 ServiceUnavailable", "\(request)") }
        #expect(contract.text(4) == #"{"isCharging":false}"#, "the answer has the durable state")
    }
}

extension Requests {
    private static let services = {
        let configuration = GatewayConfiguration()
        return GatewayServices(
            configuration,
            backups: BackupService(
                store: GatewayStore(configuration),
                mailboxes: PerOutput(loops: [], webhooks: LoopMailbox())
            ),
            metrics: MetricsService(engine: Mailbox<CommandBatch>()),
            reload: { _ throws(APIError) in throw .nothingToReload }
        )
    }()

    /// Sends an operation's work for a device to the engine, as a loop would.
    fileprivate func act(_ request: Int, _ operation: Operation, on device: Int) {
        var token = ByteBuffer()
        device.token.writeHex(to: &token)
        let call = OperationCall(
            operation,
            by: self.caller,
            reply: Self.address(request),
            parameter: token.view,
            query: ByteView(),
            body: ByteView(),
            services: Self.services
        )
        guard case .asked(let work)? = try? operation.act(on: call) else { return }
        self.ask(request, operation, work)
    }
}
