/// Ends the wait of an `HTTPClient` in `poll`, from any thread; the next wait, when it does not wait now.
package struct HTTPWaker: Sendable {
    private let multi: MultiHandle

    init(_ multi: MultiHandle) {
        self.multi = multi
    }

    package func wake() {
        self.multi.wake()
    }
}
