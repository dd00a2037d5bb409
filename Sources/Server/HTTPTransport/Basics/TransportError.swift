/// Why the transport could not be set up; the message names the fault and the remedy.
package struct TransportError: Error, Sendable, CustomStringConvertible {
    package struct Code: Hashable, Sendable, CustomStringConvertible {
        private enum Value: String { case address, addressInUse, bind, certificate, privateKey, system }

        private let value: Value

        /// The text is not an address to listen on.
        package static var address: Code { Code(value: .address) }
        /// Somebody listens there already.
        package static var addressInUse: Code { Code(value: .addressInUse) }
        /// The system refused to listen there.
        package static var bind: Code { Code(value: .bind) }
        /// A certificate could not be read, made or used.
        package static var certificate: Code { Code(value: .certificate) }
        /// A private key could not be read, made or used.
        package static var privateKey: Code { Code(value: .privateKey) }
        /// The system refused something else.
        package static var system: Code { Code(value: .system) }

        package var description: String { self.value.rawValue }
    }

    package let code: Code
    /// What happened and what to do, one sentence each.
    package let message: String
    /// Where the error was made, `file:line`.
    package let location: String

    init(_ code: Code, _ message: String, file: String = #fileID, line: Int = #line) {
        self.code = code
        self.message = message
        self.location = "\(file):\(line)"
    }

    package var description: String { self.message }
}
