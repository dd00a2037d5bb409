import History
import Testing
