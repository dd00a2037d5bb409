import Wire

/// A parser that receives untrusted bytes, and the promises that must hold for all inputs.
struct FuzzTarget: Sendable, CustomStringConvertible {
    /// The name of the target in `deploy/fuzz` and in the folders of inputs.
    let name: String
    /// Passes one input to the parser, and throws if a promise is broken.
    let check: @Sendable (ByteView) throws(BrokenPromise) -> Void

    var description: String { self.name }

    static let all = [
        FuzzTarget(name: "bearer-token", check: BearerTokenTarget.check),
        FuzzTarget(name: "certificate-topics", check: CertificateTopicsTarget.check),
        FuzzTarget(name: "command-progress", check: CommandProgressTarget.check),
        FuzzTarget(name: "configuration", check: ConfigurationTarget.check),
        FuzzTarget(name: "event-stream", check: EventStreamTarget.check),
        FuzzTarget(name: "field-blocks", check: FieldBlockTarget.check),
        FuzzTarget(name: "history", check: HistoryTarget.check),
        FuzzTarget(name: "http1-messages", check: MessageTarget.check),
        FuzzTarget(name: "http2", check: HTTP2Target.check),
        FuzzTarget(name: "journal", check: JournalTarget.check),
        FuzzTarget(name: "json-gate", check: PayloadClassifierTarget.check),
        FuzzTarget(name: "json-writer", check: JSONWriterTarget.check),
        FuzzTarget(name: "paths", check: PathTarget.check),
        FuzzTarget(name: "progress", check: ProgressTarget.check),
        FuzzTarget(name: "provider-token", check: ProviderTokenTarget.check),
        FuzzTarget(name: "push", check: PushRequestTarget.check),
        FuzzTarget(name: "records", check: RecordTarget.check),
        FuzzTarget(name: "task-moment", check: TaskMomentTarget.check),
        FuzzTarget(name: "trace", check: TraceTarget.check),
    ]
}
