package import HTTPClient
package import Wire

/// Reads the answers of a gateway.
package enum GatewayAnswer {
    /// The JSON object of a good answer.
    ///
    /// - Throws: with the gateway's reason and message when the status is not 2xx.
    package static func object(_ response: HTTPResponse) throws(CommandFailure) -> JSONValue {
        try self.check(response)
        guard let value = try? JSONReader.read(String(decoding: response.body, as: UTF8.self)), case .object = value
        else {
            throw CommandFailure(
                .failed,
                "the answer is no JSON object; see whether --gateway names a WakeGate gateway"
            )
        }
        return value
    }

    /// - Throws: with the gateway's reason and message when the status is not 2xx.
    package static func check(_ response: HTTPResponse) throws(CommandFailure) {
        guard !response.isSuccess else { return }
        let refusal = self.refusal(response)
        let reason = (try? JSONReader.read(String(decoding: response.body, as: UTF8.self)))?["reason"]?.text
        let remedy = reason.flatMap { self.remedies[$0] }
        throw CommandFailure(.failed, remedy.map { "\(refusal)\n\($0)" } ?? refusal)
    }

    /// What this program can do about a reason.
    private static let remedies = [
        "UnknownDevice":
            "`wakegate device list` shows the devices there are, and `wakegate device register` makes one known",
        "UnknownTopic": "`wakegate topic list` shows the topics there are",
    ]

    /// Status, reason and message of an answer that is an error.
    package static func refusal(_ response: HTTPResponse) -> String {
        guard let value = try? JSONReader.read(String(decoding: response.body, as: UTF8.self)),
            let reason = value["reason"]?.text
        else {
            return "the gateway answered \(response.status)"
        }
        let message = value["message"]?.text.map { ": \($0)" } ?? ""
        return TerminalText.harmless("the gateway answered \(response.status) \(reason)\(message)")
    }
}

extension JSONValue {
    package var text: String? {
        if case .string(let text) = self { return text }
        return nil
    }

    package var number: Double? {
        if case .number(let number) = self { return number.double }
        return nil
    }

    package var elements: [JSONValue] {
        if case .array(let values) = self { return values }
        return []
    }
}
