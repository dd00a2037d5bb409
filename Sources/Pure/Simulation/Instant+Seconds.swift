import Bytes
import LaunchPolicy

extension Instant {
    /// A moment of a trace, which is never before 0, in seconds with the decimals it needs.
    var seconds: String {
        let (whole, rest) = self.milliseconds.quotientAndRemainder(dividingBy: 1000)
        guard rest > 0 else { return String(whole) }
        var decimals = Array(String(1000 + rest).utf8.dropFirst())
        while decimals.last == UInt8(ascii: "0") { decimals.removeLast() }
        return "\(whole)." + String(decoding: decimals, as: UTF8.self)
    }
}
