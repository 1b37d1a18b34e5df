package diskio

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestRates: what a site file may write, and how it is displayed.
func TestRates(t *testing.T) {
	for text, want := range map[string]string{
		"100MB/s": "100MB/s", "1.5 GB/s": "1.5GB/s", "64MiB/s": "64MiB/s", "100000kB/s": "100MB/s", "1TB/s": "1TB/s",
		"1GiB/s": "1GiB/s", "123.456kB/s": "123.456kB/s",
	} {
		var r Rate
		if p := r.Parse(text); p != nil || r.String() != want {
			t.Errorf("%s is %s, %v", text, r, p)
		}
	}
	for _, wrong := range []any{
		"", "1", 1, int64(5), true, nil, "100M", "100MB", "100Mbit/s", "1e9MB/s", "-1MB/s", "0MB/s", "1kB/s", "2TB/s",
		"NaNMB/s", "1.2.3MB/s", "MB/s", ".MB/s", "1/2MB/s", strings.Repeat("9", 1000) + "MB/s", "0.0001kB/s",
	} {
		var r Rate
		if p := r.Parse(wrong); p == nil || r != 0 {
			t.Errorf("%v is read as %s", wrong, r)
		}
	}
	if got := (Limits{Read: 1e8, Write: 5e7, IOPS: 1000}).String(); got != "read 100MB/s, write 50MB/s, iops 1000" {
		t.Error(got)
	}
}

// TestReadsWhatItWrites: a displayed rate is read as the same one.
func TestReadsWhatItWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := Rate(rapid.Int64Range(int64(minRate), int64(maxRate)).Draw(t, "rate"))
		var r Rate
		if p := r.Parse(rate.String()); p != nil || r != rate {
			t.Fatalf("%d is displayed as %s and read as %d: %v", rate, rate, r, p)
		}
	})
}
