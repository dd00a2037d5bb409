import Engine
package import HTTPClient
import HTTPTransport
import Platform
package import Policy
import Wire

/// A topic's webhook, as configured by an operator.
package struct WebhookConfiguration: Hashable, Sendable {
    /// The URL to which wakes are posted; empty if it is not set.
    package var url = ""
    /// The maximum number of unanswered wakes.
    package var slots = 16
    /// The background tasks whose wakes the webhook accepts, in addition to pushes.
    package var tasks: [IdentifierPattern] = []
    /// The background sessions whose wakes the webhook accepts.
    package var sessions: [IdentifierPattern] = []
    /// The PEM file of the certificate chain with which the gateway authenticates; nil for none.
    package var certificateFile: String?
    /// The PEM file of the certificate's private key.
    package var privateKeyFile: String?
    /// The PEM file of the authorities for the receiver's certificate; nil for those of the system.
    package var certificateAuthorityFile: String?
    /// The file of the secret with which wakes are signed; nil if they are not signed.
    package var secretFile: String?
    /// True if the receiver may have a loopback, link-local or private address.
    package var allowsPrivate = false

    /// The maximum number of patterns in each of `tasks` and `sessions`.
    package static let patternsMax = 64
    /// The maximum size of an answer in bytes. A result has a few dozen bytes.
    package static let answerBytesMax = 65_536
    /// The timeout for establishing a connection, in milliseconds. It is well below the execution window, so an
    /// undeliverable wake can launch again before its deadline.
    static let connectTimeout = 5000
    /// The time without any packet from a receiver after which its wakes are lost, in milliseconds. It is the same as
    /// for streams.
    static let peerSilence = 10_000

    /// Returns the addresses that the receiver may have. Cleartext requests stay on this machine.
    func reach(of url: HTTPURL) -> AddressReach {
        if url.scheme == "http" { return .loopback }
        return self.allowsPrivate ? .anywhere : .global
    }

    /// Returns the settings for connections to the receiver.
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

/// A key of a webhook's section in the configuration, `topics.TOPIC.webhook.NAME`.
package typealias WebhookKey = SettingKey<WebhookConfiguration>

extension WebhookConfiguration {
    package static let keys = [
        WebhookKey(
            name: "url",
            requirement: "an https URL, or with allowPrivate an http URL of a loopback host; without user and password",
            summary: "the URL to which each wake of the topic is posted",
            isText: true,
            assign: {
                guard case .string(let text) = $1 else { return false }
                $0.url = text
                return true
            },
            value: { .string(HTTPURL($0.url)?.shown ?? "") }
        ),
        WebhookKey(
            "slots",
            \.slots,
            .count(1...SubscriptionRequest.slotsMax),
            "its maximum number of unanswered wakes"
        ),
        WebhookKey(patterns: "tasks", \.tasks, "the background tasks whose wakes it also receives"),
        WebhookKey(patterns: "sessions", \.sessions, "the background sessions whose wakes it also receives"),
        WebhookKey("certificate", \.certificateFile, .file, "the certificate shown to the receiver, PEM"),
        WebhookKey("key", \.privateKeyFile, .file, "its private key, PEM"),
        WebhookKey(
            "ca",
            \.certificateAuthorityFile,
            .file,
            "the authorities of the receiver's certificate, PEM; null for those of the system"
        ),
        WebhookKey("secretFile", \.secretFile, .file, "the file of the secret that wakes are signed with"),
        WebhookKey(
            "allowPrivate",
            \.allowsPrivate,
            .flag,
            "allow a receiver on loopback, link-local and private addresses"
        ),
    ]
}

extension WebhookKey {
    /// The default value in the form of a configuration file; nil if the key is required.
    package var defaultText: String? { self.name == "url" ? nil : self.value(WebhookConfiguration()).written }

    fileprivate init(patterns name: String, _ field: any Field<[IdentifierPattern]>, _ summary: String) {
        self.init(
            name: name,
            requirement: "a list of at most \(WebhookConfiguration.patternsMax) different names; "
                + PermittedTasksKey.identifierRequirement,
            summary: summary,
            isText: false,
            assign: { configuration, value in
                guard case .array(let elements) = value, elements.count <= WebhookConfiguration.patternsMax,
                    let patterns = try? PermittedTasksKey.read(value, key: name)
                else { return false }
                configuration[keyPath: field] = patterns
                return true
            },
            value: { .array($0[keyPath: field].map { .string($0.text) }) }
        )
    }
}

/// The faults of a webhook's values in combination with each other and with other settings.
struct WebhookFaults {
    let topic: String
    let webhook: WebhookConfiguration

    var all: [ConfigurationFault] {
        self.urlFaults + self.certificateFaults + self.secretFaults + self.proofFaults
    }

    private func fault(_ key: String, _ problem: String, _ remedy: String) -> ConfigurationFault {
        let section = "topics.\(self.topic).webhook"
        return ConfigurationFault(key: key.isEmpty ? section : "\(section).\(key)", problem: problem, remedy: remedy)
    }

    private var urlFaults: [ConfigurationFault] {
        guard !self.webhook.url.isEmpty else {
            return [self.fault("url", "is missing", "write an https URL")]
        }
        guard let url = HTTPURL(self.webhook.url) else {
            return [self.fault("url", "is not a URL of http or https", "write an https URL")]
        }
        var faults: [ConfigurationFault] = []
        if url.port == 0 {
            faults.append(self.fault("url", "names port 0, on which no server listens", "write a port from 1 to 65535"))
        }
        guard url.hasPlainHost else {
            let remedy = "write an address, or a name of ASCII letters, digits and hyphens (xn-- for other alphabets)"
            return faults + [self.fault("url", "names the host \(url.host), which DNS cannot have", remedy)]
        }
        if url.hasCredentials {
            let remedy = "leave it out; set secretFile, or certificate and key"
            faults.append(self.fault("url", "holds a user or a password", remedy))
        }
        if url.hasFragment { faults.append(self.fault("url", "holds a fragment, which is never sent", "leave it out")) }
        if url.scheme == "http", !self.webhook.allowsPrivate || !url.isLoopback {
            let problem = "\(url.shown) would carry wakes in cleartext"
            let remedy = "write https; http is for a receiver on this machine alone, with allowPrivate: true"
            faults.append(self.fault("url", problem, remedy))
        } else if let address = url.address, !self.webhook.reach(of: url).admits(address.scope) {
            let problem = "\(address) is not a public address (\(address.scope.rawValue))"
            faults.append(self.fault("url", problem, "name a public host, or set allowPrivate: true"))
        }
        return faults
    }

    private var certificateFaults: [ConfigurationFault] {
        let webhook = self.webhook
        var faults: [ConfigurationFault] = []
        if (webhook.certificateFile == nil) != (webhook.privateKeyFile == nil) {
            let missing = webhook.certificateFile == nil ? "certificate" : "key"
            let other = webhook.certificateFile == nil ? "key" : "certificate"
            faults.append(self.fault(missing, "is missing with \(other)", "name a readable PEM file"))
        }
        let files = [
            ("certificate", webhook.certificateFile), ("key", webhook.privateKeyFile),
            ("ca", webhook.certificateAuthorityFile),
        ]
        for case (let key, let path?) in files {
            let problem = FileSystem.unreadable(path).map { "cannot be read (\($0))" }
            guard let problem = OrdinaryFile.isOther(path) ? "is not a regular file" : problem else { continue }
            faults.append(self.fault(key, "\(path) \(problem)", "name a readable PEM file"))
        }
        guard faults.isEmpty, let certificate = webhook.certificateFile, let key = webhook.privateKeyFile else {
            return faults
        }
        do throws(TransportError) {
            _ = try TLSContext(certificateChainFile: certificate, privateKeyFile: key)
        } catch {
            faults.append(self.fault("certificate", "does not fit: \(error.message)", "name a pair that fits"))
        }
        return faults
    }

    private var secretFaults: [ConfigurationFault] {
        guard let path = self.webhook.secretFile else { return [] }
        do throws(CredentialError) {
            _ = try WebhookSecret.read(path)
            return []
        } catch {
            return [ConfigurationFault(key: "topics.\(self.topic).webhook.secretFile", error)]
        }
    }

    private var proofFaults: [ConfigurationFault] {
        let webhook = self.webhook
        guard webhook.secretFile == nil, webhook.certificateFile == nil, !webhook.allowsPrivate else { return [] }
        let problem = "nothing shows the receiver that a wake is from this gateway"
        return [self.fault("", problem, "set secretFile, or certificate and key")]
    }
}
