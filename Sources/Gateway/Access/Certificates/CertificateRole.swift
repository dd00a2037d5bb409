/// What the holder of a client certificate may do; never both.
package enum CertificateRole: Hashable, Sendable {
    /// Push.
    case provider
    /// Subscribe, answer wakes, register and remove devices, report conditions.
    case worker

    /// The organizational unit of a worker's subject; who has another, or none, is a provider.
    static let workerUnit = "worker"
}
