package capture

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzAnswers: a program in a node may print anything. The parsers must not panic. Values are
// checked where samples are stored.
func FuzzAnswers(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range seeds {
		if text, err := os.ReadFile(seed); err == nil { // testdata also has directories
			f.Add(text)
		}
	}
	f.Fuzz(func(_ *testing.T, text []byte) {
		_, _ = parseSent(text)
		_, _ = parseReceived(text)
		_ = obtained(text, 1)
		c := Counters{}
		c.softnet(text)
		c.snmp(text)
		c.devices("x", text)
		c.ethtool("x", text)
	})
}
