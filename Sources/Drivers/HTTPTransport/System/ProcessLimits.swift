internal import Glibc

/// What the system allows this process, and what becomes of it where that is too little.
package enum ProcessLimits {
    /// The descriptors below which nothing works: files of the state, sockets, and those of Foundation and Dispatch,
    /// which trap where they find none. What is left for connections is beyond.
    package static let descriptorsMin = 128

    /// Raises the limit of descriptors as far as is allowed.
    ///
    /// - Throws: `TransportError` with the limit when that is too little for a gateway.
    package static func checkDescriptors() throws(TransportError) {
        let limit = System.raiseDescriptorLimit()
        guard limit < self.descriptorsMin else { return }
        throw TransportError(
            .system,
            "This process may open \(limit) files, and a gateway needs at least \(self.descriptorsMin), and one for "
                + "each connection. Raise the limit: `ulimit -n 65536` in a shell, LimitNOFILE= in a unit of systemd."
        )
    }

    /// Has a write past the limit of a file's size fail, which is then an error of the file, and not end the process;
    /// and a mapped file that somebody cuts end it with the file's name.
    package static func takeSignalsAsErrors() {
        signal(SIGXFSZ, SIG_IGN)
        System.explainBusErrors()
    }
}
