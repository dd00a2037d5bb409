/// What an operation takes: who may ask for it, and what they must reach.
package struct AccessRule: Hashable, Sendable {
    /// Who may ask.
    package enum Role: Hashable, Sendable {
        /// Everybody: nobody is asked who they are.
        case anybody
        /// Who pushes, and proves it as the provider API has it.
        case provider
        /// Workers, and operators too.
        case worker
        case `operator`
    }

    /// What the caller must reach.
    package enum Scope: Hashable, Sendable {
        /// Nothing that belongs to a topic.
        case nothing
        /// The topic that the path names.
        case topicInPath
        /// The topic of what is asked about, which the engine alone knows: it shows nothing of other topics.
        case topicOfSubject
        /// All topics together.
        case everyTopic
    }

    package let role: Role
    package let scope: Scope

    package init(_ role: Role, _ scope: Scope) {
        self.role = role
        self.scope = scope
    }
}
