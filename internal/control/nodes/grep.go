package nodes

import (
	"io"
	"regexp"

	"orrery/internal/host"
)

// maxSearchedBytes is the length of a line that is searched at once. A longer one is searched in pieces.
const maxSearchedBytes = 64 << 10

// grep returns a writer that passes on the lines that match a pattern. The host matches them, and not the
// node, because the node's own search can take exponential time and may be missing. Flush must be called at
// the end.
func grep(pattern *regexp.Regexp, to io.Writer) *host.LineWriter {
	return host.NewLineWriter(maxSearchedBytes, func(line []byte) error {
		if !pattern.Match(line[:len(line)-1]) { // without its end, so that $ matches there
			return nil
		}
		_, err := to.Write(line)
		return err
	})
}
