package prove

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func sample() *Report {
	return &Report{Site: "karoo", Host: "sv1<script>", At: time.Unix(0, 0), Rounds: 3, Seconds: 3, Rows: []Row{
		{Node: "web", Limit: Limit{Name: "net.lan.rate", Kind: ToNode, Value: 1e9, Unit: BitsPerSecond},
			Rounds: []Reading{{Rate: 1e9}}, Measured: 1.001e9, Deviation: 0.001, Spread: 0.002, Verdict: Holds,
			Neighbour: &Beside{Node: "db", Alone: 2, Beside: 1, Ratio: 0.5}},
		{Node: "web", Limit: Limit{Name: "disk.read", Kind: Read, Value: 1e6, Unit: BytesPerSecond},
			Rounds: []Reading{{Rate: 2e6}}, Measured: 2e6, Deviation: 1, Verdict: TooHigh},
		{Node: "db", Limit: Limit{Name: "memory", Kind: Memory, Value: 1 << 30, Unit: Bytes}, Verdict: Untold,
			Why: "it <b>must</b> not"},
	}}
}

// TestWriteText: the table has a line for each limit.
func TestWriteText(t *testing.T) {
	var b bytes.Buffer
	if err := sample().WriteText(&b); err != nil {
		t.Fatal(err)
	}
	want := `NODE  LIMIT                     DECLARED  MEASURED     DIFFERS    A/A     NEIGHBOUR  VERDICT
web   net.lan.rate to the node  1 Gbit/s  1.001 Gbit/s  +0.10 %    0.20 %  db ×0.500  holds within 3 %
web   disk.read                 1 MB/s    2 MB/s       +100.00 %  0.00 %  -          too high
db    memory                    1024 MiB  -            -          -       -          cannot be told here because it <b>must</b> not
`
	if fields(b.String()) != fields(want) {
		t.Errorf("%s", b.String())
	}
}

func fields(text string) string { return strings.Join(strings.Fields(text), " ") }

// TestHTML: the page has every row, and text is never markup.
func TestHTML(t *testing.T) {
	var b bytes.Buffer
	if err := sample().HTML(&b); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, want := range []string{"holds within 3 %", "too high", "cannot be told here because it &lt;b&gt;",
		"sv1&lt;script&gt;", "db ×0.500", "+100.00 %"} {
		if !strings.Contains(strings.ReplaceAll(page, "&#43;", "+"), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "<script") || strings.Contains(page, "<b>must") || strings.Contains(page, "http") {
		t.Error("the page has markup of others, or needs the network")
	}
}

// TestJSON: a program reads the verdicts.
func TestJSON(t *testing.T) {
	var b bytes.Buffer
	if err := sample().JSON(&b); err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(b.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if len(back.Rows) != 3 || back.Count(Holds) != 1 || back.Count(TooHigh, Untold) != 2 ||
		back.Rows[0].Name != "net.lan.rate" {
		t.Errorf("%s", b.String())
	}
}

// TestUntold: a node that cannot be loaded is told, not dropped, and the load is never started.
func TestUntold(t *testing.T) {
	n := &Target{Name: "vm"}
	limits := []Limit{{Kind: Processors, Value: 1}, {Kind: Memory}}
	rows, err := Node(t.Context(), Options{Rounds: 1, Seconds: 0.2}, []*Target{n}, n, limits)
	if err != nil || len(rows) != 2 || rows[0].Verdict != Untold || rows[1].Verdict != Untold {
		t.Errorf("%v, %v", rows, err)
	}
}
