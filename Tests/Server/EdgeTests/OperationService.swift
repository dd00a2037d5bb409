import Engine
import Foundation
import Gateway
import HTTPTransport
import Platform
import WakeGateTestKit
import Wire

import class Gateway.Operation

/// Serves requests in memory as a loop does: finds the operation, admits the caller, and performs it.
final class OperationService {
    /// The result of a request.
    enum Served {
        case outcome(OperationOutcome, Caller)
        case refused(APIError)
        case methodNotAllowed(allow: String)

        /// The work for the engine, and its caller.
        var asked: (work: EngineWork, caller: Caller)? {
            guard case .outcome(.asked(let work), let caller) = self else { return nil }
            return (work, caller)
        }

        /// The text of an immediate answer.
        var text: String? {
            guard case .outcome(.answered(let answer), _) = self else { return nil }
            return String(decoding: answer.body, as: UTF8.self)
        }

        /// The status and the reason of a refusal.
        var refusal: String? {
            guard case .refused(let error) = self else { return nil }
            return "\(error.status) \(error.reason)"
        }

        /// The message of a refusal.
        var message: String? {
            guard case .refused(let error) = self else { return nil }
            return error.message
        }
    }

    static let topic = "com.example.mine"
    static let otherTopic = "com.example.other"

    private let folder: TemporaryFolder
    private let table: OperationTable
    private let key: TokenKey
    private let services: GatewayServices
    private var authorization: Authorization
    /// The number of requests counted under a token.
    private(set) var countedTokens = 0
    /// The proof of the last admitted caller.
    private(set) var lastProof: ShownProof?
    /// The value of the second path parameter in the last request.
    private(set) var lastSecondParameter = ""

    /// - Parameters:
    ///   - requiresTokens: true if workers, and operators on other machines, need a token.
    ///   - permitsTestPushes: true if operators may push.
    init(
        _ operations: [Operation] = Operation.all,
        requiresTokens: Bool = true,
        permitsTestPushes: Bool = false
    ) throws {
        self.folder = try TemporaryFolder()
        self.key = try TokenKey.make(in: self.folder.path)
        self.table = OperationTable(operations)
        var configuration = GatewayConfiguration()
        configuration.stateFolder = self.folder.path
        configuration.checksTokens = requiresTokens
        configuration.permitsTestPushes = permitsTestPushes
        self.authorization = Authorization(tokens: configuration.tokenCheck { _ in }, certificates: nil)
        self.services = GatewayServices(
            configuration,
            backups: BackupService(
                store: GatewayStore(configuration),
                mailboxes: PerOutput(loops: [], webhooks: LoopMailbox())
            ),
            metrics: MetricsService(engine: Mailbox<CommandBatch>()),
            reload: { _ throws(APIError) in throw .nothingToReload }
        )
    }

    /// Returns a token that is valid for an hour; without topics, for all of them.
    func token(_ role: BearerRole, _ topics: String...) throws -> String {
        let expiresAt = SystemClock.wall / 1000 + 3600
        let token = BearerToken(id: BearerToken.newID(), role: role, topics: topics, expiresAt: expiresAt)
        return try token.text(signedWith: self.key)
    }

    /// - Parameters:
    ///   - request: the method and the target.
    ///   - isLocal: true if only this machine can reach the admin listener.
    func serve(
        _ request: String,
        on role: ListenerRole = .admin,
        isLocal: Bool = false,
        token: String? = nil,
        body: String = ""
    ) -> Served {
        let words = request.split(separator: " ")
        let target = words[1].split(separator: "?", maxSplits: 1)
        let query = target.count == 2 ? String(target[1]) : ""
        return String(words[0]).withByteView { method in
            String(target[0]).withByteView { path in
                query.withByteView { query in
                    body.withByteView { body in
                        self.serve(method, path, query, body, role, isLocal, token.map { "Bearer \($0)" })
                    }
                }
            }
        }
    }

    private func serve(
        _ method: ByteView,
        _ path: ByteView,
        _ query: ByteView,
        _ body: ByteView,
        _ role: ListenerRole,
        _ isLocal: Bool,
        _ authorization: String?
    ) -> Served {
        let authorization = authorization.map { Array($0.utf8) } ?? []
        return authorization.withByteView { shown in
            do throws(APIError) {
                switch self.table.match(method: method, path: path, on: role) {
                case .notFound: throw .badPath
                case .methodNotAllowed(let allow): return .methodNotAllowed(allow: allow)
                case .found(let operation, let place):
                    let parameter = path[place.first]
                    let admitted = try self.authorization.admit(
                        { shown.isEmpty ? .absent : AuthorizationField(value: shown) },
                        on: ConnectionID(index: 0, generation: 1),
                        through: role == .admin ? .operators(isLocal: isLocal) : .workers,
                        by: operation.access,
                        topic: parameter,
                        count: { _ in self.countedTokens += 1 }
                    )
                    self.lastProof = admitted.proof
                    self.lastSecondParameter = path[place.second].string
                    let call = OperationCall(
                        operation,
                        by: admitted.caller,
                        reply: .stream(LoopStream(loop: 0, connectionIndex: 0, connectionGeneration: 1, number: 1)),
                        parameter: parameter,
                        secondParameter: path[place.second],
                        query: query,
                        body: body,
                        services: self.services
                    )
                    return .outcome(try operation.act(on: call), admitted.caller)
                }
            } catch {
                return .refused(error)
            }
        }
    }
}
