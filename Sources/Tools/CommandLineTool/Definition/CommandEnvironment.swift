package import Gateway
package import Wire

/// What the commands use of the rest of the program.
package struct CommandEnvironment: Sendable {
    /// Called once when the gateway accepts.
    package typealias OnReady = @Sendable (BoundAddresses) -> Void

    /// Called with what happens at the gateway, on a thread for nothing else; false when it could not be told for now.
    package typealias OnNews = @Sendable (LiveNews) -> Bool

    /// Runs a gateway until it is told to stop, which reads its configuration again when it is told to; returns the
    /// exit status. Without somebody who is told of it nothing is noted of what happens.
    package typealias RunGateway =
        @Sendable (GatewayConfiguration, ConfigurationSource, @escaping OnReady, OnNews?) async throws -> Int32

    package var runGateway: RunGateway
    /// Makes the TLS material of development in a folder, and keeps what is there.
    package var makeCertificates: @Sendable (String) throws -> Void
    /// Signs a message with the key in a file, by ES256; the signature is R and then S.
    package var signES256: @Sendable (_ message: [UInt8], _ keyFile: String) throws -> [UInt8]
    /// How the program was called, for command lines to paste.
    package var programName: String

    package init(
        programName: String,
        runGateway: @escaping RunGateway,
        makeCertificates: @escaping @Sendable (String) throws -> Void,
        signES256: @escaping @Sendable (_ message: [UInt8], _ keyFile: String) throws -> [UInt8]
    ) {
        self.programName = programName
        self.runGateway = runGateway
        self.makeCertificates = makeCertificates
        self.signES256 = signES256
    }
}
