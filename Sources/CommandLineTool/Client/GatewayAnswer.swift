import Foundation
package import Gateway
package import HTTPClient

/// Reads the answers of a gateway.
package enum GatewayAnswer {
    /// The JSON object of a good answer.
    ///
    /// - Throws: with the gateway's reason and message when the status is not 2xx.
    package static func object(_ response: HTTPResponse) throws(CommandFailure) -> JSONValue {
        try self.check(response)
        guard let value = try? JSONValue.json5(Data(response.body)), case .object = value else {
            throw CommandFailure(
                .failed,
                "the answer is no JSON object; see whether --gateway names a WakeGate gateway"
            )
        }
        return value
    }

    /// - Throws: with the gateway's reason and message when the status is not 2xx.
    package static func check(_ response: HTTPResponse) throws(CommandFailure) {
        if !response.isSuccess { throw CommandFailure(.failed, self.refusal(response)) }
    }

    /// Status, reason and message of an answer that is an error.
    package static func refusal(_ response: HTTPResponse) -> String {
        guard let value = try? JSONValue.json5(Data(response.body)), let reason = value["reason"]?.text else {
            return "the gateway answered \(response.status)"
        }
        let message = value["message"]?.text.map { ": \($0)" } ?? ""
        return "the gateway answered \(response.status) \(reason)\(message)"
    }
}

extension JSONValue {
    /// A member of an object; nil when there is none, or the value is no object.
    package subscript(name: String) -> JSONValue? {
        if case .object(let members) = self { return members[name] }
        return nil
    }

    package var text: String? {
        if case .string(let text) = self { return text }
        return nil
    }

    package var number: Double? {
        if case .number(let number) = self { return number }
        return nil
    }

    package var elements: [JSONValue] {
        if case .array(let values) = self { return values }
        return []
    }

    /// An object's members in the order of their names.
    package var members: [(name: String, value: JSONValue)] {
        guard case .object(let members) = self else { return [] }
        return members.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }
}
