import HTTPClient
import HTTPTransport
import Platform
import Wire

/// What the values of a webhook's section forbid together, or outside of it.
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
            return [self.fault("url", "is no URL of http or https", "write an https URL")]
        }
        var faults: [ConfigurationFault] = []
        if url.port == 0 {
            faults.append(self.fault("url", "names port 0, on which nobody listens", "write a port from 1 to 65535"))
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
        if url.scheme == "http", !self.webhook.allowsPrivate || !Self.isLoopback(url) {
            let problem = "\(url.shown) would carry wakes in cleartext"
            let remedy = "write https; http is for a receiver on this machine alone, with allowPrivate: true"
            faults.append(self.fault("url", problem, remedy))
        } else if let address = url.address, !self.webhook.reach(of: url).admits(address.scope) {
            let problem = "\(address) is no public address (\(address.scope.rawValue))"
            faults.append(self.fault("url", problem, "name a public host, or set allowPrivate: true"))
        }
        return faults
    }

    private static func isLoopback(_ url: HTTPURL) -> Bool {
        url.host.lowercased() == "localhost" || url.address?.scope == .loopback
    }

    private var certificateFaults: [ConfigurationFault] {
        let webhook = self.webhook
        var faults: [ConfigurationFault] = []
        if (webhook.certificateFile == nil) != (webhook.privateKeyFile == nil) {
            let missing = webhook.certificateFile == nil ? "certificate" : "key"
            let other = webhook.certificateFile == nil ? "key" : "certificate"
            faults.append(self.fault(missing, "is missing beside \(other)", "name a readable PEM file"))
        }
        let files = [
            ("certificate", webhook.certificateFile), ("key", webhook.privateKeyFile),
            ("ca", webhook.certificateAuthorityFile),
        ]
        for case (let key, let path?) in files where OrdinaryFile.isOther(path) {
            faults.append(self.fault(key, "\(path) is no ordinary file", "name a readable PEM file"))
        }
        for case (let key, let path?) in files {
            guard let reason = FileSystem.unreadable(path) else { continue }
            faults.append(self.fault(key, "\(path) cannot be read (\(reason))", "name a readable PEM file"))
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
            let parts = error.message.split(separator: "; ", maxSplits: 1).map(String.init)
            return [self.fault("secretFile", parts[0], parts.count == 2 ? parts[1] : "name a readable file")]
        }
    }

    private var proofFaults: [ConfigurationFault] {
        let webhook = self.webhook
        guard webhook.secretFile == nil, webhook.certificateFile == nil, !webhook.allowsPrivate else { return [] }
        let problem = "nothing shows the receiver that a wake is from this gateway"
        return [self.fault("", problem, "set secretFile, or certificate and key")]
    }
}
