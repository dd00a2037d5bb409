import Foundation
import Gateway
import HTTPTransport
import Platform
import WakeGateTestKit
import Wire

extension Caller {
    /// An operator with a token for these topics, as the check of a request makes it.
    static func ofTopics(_ topics: [Int]) throws -> Caller {
        let folder = NSTemporaryDirectory() + "wakegate-caller-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let key = try TokenKey.make(in: folder)
        let token = BearerToken(
            id: BearerToken.newID(),
            role: .operator,
            topics: topics.map { EngineRig.topicName($0) },
            expiresAt: SystemClock.wall / 1000 + 3600
        )
        var configuration = GatewayConfiguration()
        configuration.stateFolder = folder
        var authorization = Authorization(tokens: configuration.tokenCheck { _ in }, certificates: nil)
        let shown = "bearer \(try token.text(signedWith: key))".utf8.map { $0 }
        return try shown.withByteView { shown in
            try authorization.admit(
                { AuthorizationField(value: shown) },
                on: ConnectionID(index: 0, generation: 1),
                through: .operators(isLocal: false),
                by: AccessRule(.operator, .topicOfSubject),
                topic: ByteView(),
                count: { _ in }
            ).caller
        }
    }
}
