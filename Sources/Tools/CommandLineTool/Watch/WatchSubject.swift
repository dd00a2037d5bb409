import HTTPClient
import Text

/// What is watched: a gateway, one of its topics, or one device.
enum WatchSubject {
    case gateway
    case topic(String)
    case device(String)

    /// The path that is asked again and again; nil for the gateway, which tells by itself.
    var path: String? {
        switch self {
        case .gateway: nil
        case .topic(let topic): "/v1/stats/topics/\(URLPath.component(topic))"
        case .device(let token): "/v1/devices/\(URLPath.component(token))"
        }
    }
}
