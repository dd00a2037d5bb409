/// The name of a transfer, which the agent makes: 32 hexadecimal digits.
public struct BackgroundTransferID: Hashable, Sendable, CustomStringConvertible, LosslessStringConvertible {
    /// The digits, in lower case.
    public let description: String

    /// Reads the digits.
    ///
    /// - Parameter text: 32 hexadecimal digits.
    /// - Returns: nil for anything else.
    public init?(_ text: String) {
        guard text.utf8.count == 32, text.utf8.allSatisfy({ $0 &- 0x30 < 10 || ($0 | 0x20) &- 0x61 < 6 }) else {
            return nil
        }
        self.description = text.lowercased()
    }
}
