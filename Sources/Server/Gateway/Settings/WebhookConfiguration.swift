package import HTTPClient
package import Policy

/// A topic's webhook, as an operator configures it.
package struct WebhookConfiguration: Hashable, Sendable {
    /// Where wakes are posted to; empty when it was not set.
    package var url = ""
    /// How many unanswered wakes it may hold.
    package var slots = 16
    /// The background tasks whose wakes it takes, besides those of pushes.
    package var tasks: [IdentifierPattern] = []
    /// The background sessions whose wakes it takes.
    package var sessions: [IdentifierPattern] = []
    /// PEM file of the certificate chain that is shown to the receiver; nil for none.
    package var certificateFile: String?
    /// PEM file of that certificate's private key.
    package var privateKeyFile: String?
    /// PEM file of the authorities that may have signed the receiver's certificate; nil for the system's.
    package var certificateAuthorityFile: String?
    /// The file of the secret that wakes are signed with; nil when they are not.
    package var secretFile: String?
    /// Whether the receiver may stand on loopback, link-local and private addresses.
    package var allowsPrivate = false

    package init() {}

    /// The most patterns of tasks, and of sessions.
    package static let patternsMax = 64
    /// The longest answer that is read of a receiver; a result takes some dozen bytes.
    package static let answerBytesMax = 65_536
    /// How long making a connection may take, in milliseconds: well within the execution window, so that a wake that
    /// cannot be delivered does not expire, but launches again.
    static let connectTimeout = 5000
    /// How long a receiver may be silent on the network, in milliseconds, before its wakes are lost; as for streams.
    static let peerSilence = 10_000

    /// Which addresses the receiver may have: cleartext never leaves this machine.
    func reach(of url: HTTPURL) -> AddressReach {
        if url.scheme == "http" { return .loopback }
        return self.allowsPrivate ? .anywhere : .global
    }

    /// How to connect to the receiver.
    package func settings(for url: HTTPURL) -> HTTPClientSettings {
        var settings = HTTPClientSettings()
        settings.certificateAuthorityFile = self.certificateAuthorityFile
        settings.certificateFile = self.certificateFile
        settings.privateKeyFile = self.privateKeyFile
        settings.connectTimeoutMilliseconds = Self.connectTimeout
        settings.bodyBytesMax = Self.answerBytesMax
        settings.reach = self.reach(of: url)
        settings.usesProxies = false
        settings.peerSilenceMillisecondsMax = Self.peerSilence
        return settings
    }
}
