/// The topics a caller may reach.
package enum TopicScope: Hashable, Sendable {
    case all
    case only(Set<String>)

    package func contains(_ topic: String) -> Bool {
        switch self {
        case .all: true
        case .only(let topics): topics.contains(topic)
        }
    }
}
