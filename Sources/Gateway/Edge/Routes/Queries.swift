package import Answers
package import Bytes
import Foundation
import Text
package import WakeDispatch

/// The query of a subscription: `slots=16&name=<label>&device=<token>&device=<token>`.
package struct SubscriptionQuery {
    /// The most devices a stream may name.
    package static let devicesMax = 64
    /// The most bytes of a stream's label.
    static let nameBytesMax = 128

    /// One slot for every device, unless the query says otherwise.
    package var request: SubscriptionRequest

    /// - Throws: `APIError` that names the parameter, what is wrong and what it takes.
    package init(_ query: ByteView) throws(APIError) {
        var slots: Int?
        var name: String?
        var devices: [DeviceToken] = []
        for part in query.string.split(separator: "&") {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            let value = pair.count == 2 ? pair[1] : ""
            switch pair[0] {
            case "slots":
                guard slots == nil else { throw Self.repeated("slots") }
                slots = try Self.slots(value)
            case "name":
                guard name == nil else { throw Self.repeated("name") }
                guard value.utf8.count <= Self.nameBytesMax else {
                    throw APIError(400, "BadQuery", "name is a label of at most \(Self.nameBytesMax) bytes.")
                }
                name = value
            case "device":
                guard let token = value.withByteView({ DeviceToken(hex: $0) }) else { throw APIError.badDeviceToken }
                guard devices.count < Self.devicesMax else {
                    throw APIError(400, "BadQuery", "device may come at most \(Self.devicesMax) times.")
                }
                devices.append(token)
            default:
                let nearest = NearestMatch.find(pair[0], in: ["slots", "name", "device"]).map { " (\($0)?)" } ?? ""
                throw APIError(
                    400,
                    "BadQuery",
                    "\(pair[0]) is not a parameter\(nearest); a subscription takes slots, name and device."
                )
            }
        }
        self.request = SubscriptionRequest(
            slots: slots ?? 1,
            devices: devices,
            label: name.map { $0.removingPercentEncoding ?? $0 } ?? ""
        )
    }

    private static func slots(_ text: String) throws(APIError) -> Int {
        guard let slots = text.withByteView({ $0.decimal }), slots >= 1, slots <= UInt64(SubscriptionRequest.slotsMax)
        else {
            throw APIError(
                400,
                "BadQuery",
                "slots is a whole number from 1 to \(SubscriptionRequest.slotsMax), not \"\(text)\"."
            )
        }
        return Int(slots)
    }

    private static func repeated(_ parameter: String) -> APIError {
        APIError(400, "BadQuery", "\(parameter) may come only once.")
    }
}

/// The query of a question about one push: nothing, or `device=<token>`.
package struct PushQuery {
    /// The device whose push of this name is meant; nil for the one that had it last.
    package let device: DeviceToken?

    /// - Throws: `APIError` that says what the query takes.
    package init(_ query: ByteView) throws(APIError) {
        guard !query.isEmpty else {
            self.device = nil
            return
        }
        guard query.starts(with: "device=") else {
            throw APIError(400, "BadQuery", "A push takes the parameter device=<token> alone, once.")
        }
        guard let device = DeviceToken(hex: query.dropFirst("device=".utf8.count)) else { throw .badDeviceToken }
        self.device = device
    }
}
