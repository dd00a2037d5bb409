import Engine
import HTTPTransport
import ServiceManager
import Wire

/// What watches the files of credentials that a configuration names, each of them for the process's whole life or
/// until another file is named.
struct CredentialWatches: Sendable {
    /// nil where providers are asked for no tokens.
    private(set) var providerKeys: ProviderKeyWatch?
    /// nil where nobody is asked for a client certificate.
    private(set) var clientTrust: ClientTrustWatch?

    /// Reads the files of `configuration`, and watches them from then on.
    ///
    /// - Parameter watches: those there are, which go on where nothing else is named.
    /// - Throws: `ConfigurationError` with the keys of the files that cannot be used.
    init(
        _ configuration: GatewayConfiguration,
        log: GatewayLog,
        keeping watches: CredentialWatches? = nil,
        of before: GatewayConfiguration? = nil
    ) throws(ConfigurationError) {
        var faults: [ConfigurationFault] = []
        if let watches, configuration.providerKeysFolder == before?.providerKeysFolder {
            self.providerKeys = watches.providerKeys
        } else if let folder = configuration.providerKeysFolder {
            do throws(ProviderKeyError) {
                self.providerKeys = try ProviderKeyWatch(folder) { log.write(.providerKeys, ["cause": $0.message]) }
            } catch {
                faults.append(ConfigurationFault(key: "providerKeys", CredentialError(message: error.message)))
            }
        }
        let isSame =
            configuration.clientCAFile == before?.clientCAFile && configuration.clientCRLFile == before?.clientCRLFile
        if let watches, isSame {
            self.clientTrust = watches.clientTrust
        } else if let files = configuration.clientTrustFiles {
            do throws(CredentialError) {
                self.clientTrust = try ClientTrustWatch(files) { log.write(.clientTrust, ["cause": $0]) }
            } catch {
                faults.append(ConfigurationFault(key: "tls.clientCA", error))
            }
        }
        guard faults.isEmpty else { throw ConfigurationError(faults: faults) }
    }

    /// Has the loops use what these watch; the ones that are replaced watch no more.
    func takeOver(from watches: CredentialWatches, _ shared: SharedParts) {
        if let new = self.providerKeys, new !== watches.providerKeys, let keys = shared.providerKeys {
            watches.providerKeys?.stop()
            new.feed(keys)
        }
        if let new = self.clientTrust, new !== watches.clientTrust, let trusts = shared.clientTrusts {
            watches.clientTrust?.stop()
            new.feed(trusts)
        }
    }

    func stop() {
        self.providerKeys?.stop()
        self.clientTrust?.stop()
    }
}
