package import Access
package import WakeDispatch

/// What a caller asks of the engine, and who waits for the answer.
package struct EngineRequest: Sendable {
    package let reply: StreamAddress
    /// Whose topics alone it reaches.
    package let caller: Caller
    package let afterFailedStore: AfterFailedStore
    package let verb: EngineVerb

    package init(reply: StreamAddress, caller: Caller, afterFailedStore: AfterFailedStore, _ verb: EngineVerb) {
        self.reply = reply
        self.caller = caller
        self.afterFailedStore = afterFailedStore
        self.verb = verb
    }
}
