package xl

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// versions are the versions of xl whose output is in testdata, see its README.md.
var versions = []string{"4.14", "4.17", "4.19"}

func sample(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func same(t *testing.T, what string, got any, err error, want any) {
	t.Helper()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %+v, %v; want %+v", what, got, err, want)
	}
}

func TestParseList(t *testing.T) {
	const mib = 1 << 20
	for version, want := range map[string][]Domain{
		"4.14": {{"Domain-0", 0, 2048 * mib, 4, "r-----", 1234.5}, {"orrery-lab-7", 3, 512 * mib, 1, "-b----", 12},
			{"a name with spaces", 12, 256 * mib, 2, "--p---", 0.3}},
		"4.17": {
			{"Domain-0", 0, 1100 * mib, 1, "r-----", 61.9}, {"orrery-it-xen-1", 1, 192 * mib, 1, "r-----", 4.2},
			{"orrery-it-xen-2", 2, 192 * mib, 1, "---sc-", 3.1}, {"(null)", 5, 0, 1, "--p--d", 0},
		},
		"4.19": {
			{"Domain-0", 0, 3987 * mib, 8, "r-----", 90000.2},
			{"orrery-a-twin-10000000000000000000000000000000012", 7, 1 << 40, 64, "-b----", 100},
			{"down", 9, 128 * mib, 1, "---s--", 1},
		},
	} {
		got, err := ParseList(sample(t, "list-"+version))
		same(t, version, got, err, want)
	}
	for state, want := range map[State][3]bool{
		"r-----": {}, "-bp---": {true}, "---s--": {false, true}, "---sc-": {false, true, true}, "--p--d": {true, true},
		"": {}, "-----": {},
	} {
		if got := [3]bool{state.Paused(), state.Down(), state.Crashed()}; got != want {
			t.Errorf("%s: %v", state, got)
		}
	}
}

func TestParseDetails(t *testing.T) {
	guest := Details{3, "orrery-it-xen-1", "1b4e28ba-2fa1-11d2-883f-0016d3cca427", "pvh",
		"/var/lib/orrery/layers/0123/vmlinux", 2, 1, []string{"02:11:22:33:44:55"}}
	for _, version := range versions {
		got, err := ParseDetails(sample(t, "list-l-"+version+".json"))
		same(t, version, got, err, []Details{{Name: "Domain-0", Type: "pv"}, guest})
	}
	got, err := ParseDetails([]byte(`{"domid": null, "config": {"c_info": {"name": "x"}}}`)) // one domain, by its name
	same(t, "one", got, err, []Details{{ID: -1, Name: "x"}})
}

func TestParseInfo(t *testing.T) {
	for version, want := range map[string]struct {
		full     string
		pv, hvm  bool
		somecaps string
	}{"4.14": {"4.14.6", true, true, "pv_directio"}, "4.17": {"4.17.5", true, true, "gnttab-v2"},
		"4.19": {"4.19.1", true, false, "vmtrace"}} {
		i, err := ParseInfo(sample(t, "info-"+version))
		if err != nil {
			t.Fatal(err)
		}
		if i.Version != want.full || i.CPUs != 4 || i.Total != 16383<<20 || i.Free != 12201<<20 ||
			i.Scheduler != "credit2" || !strings.Contains(strings.Join(i.Can, " "), want.somecaps) {
			t.Errorf("%s: %+v", version, i)
		}
		if i.Runs("pv") != want.pv || i.Runs("hvm") != want.hvm || i.Runs("pvh") != want.hvm {
			t.Errorf("%s: what runs: %v %v %v", version, i.Runs("pv"), i.Runs("hvm"), i.Runs("pvh"))
		}
	}
}

func TestParseUptime(t *testing.T) {
	for _, version := range versions {
		got, err := ParseUptime(sample(t, "uptime-"+version))
		same(t, version, got, err, []Uptime{
			{"Domain-0", 0, 12*24*time.Hour + 3*time.Hour + 4*time.Minute + 5*time.Second},
			{"orrery-lab-7", 3, 62 * time.Second}, {"a name, spaces", 4, 24 * time.Hour},
		})
	}
}

func TestParseDevices(t *testing.T) {
	for _, version := range versions {
		cards, err := ParseNICs(sample(t, "network-list-"+version))
		same(t, version, cards, err, []NIC{{0, Connected, "00:16:3e:01:02:03", "/local/domain/0/backend/vif/3/0"},
			{1, 2, "02:aa:bb:cc:dd:ee", "/local/domain/0/backend/vif/3/1"}})
		disks, err := ParseDisks(sample(t, "block-list-"+version))
		same(t, version, disks, err, []Disk{{51712, Connected, "/local/domain/0/backend/vbd/3/51712"},
			{51728, 1, "/local/domain/0/backend/qdisk/3/51728"}})
	}
}

// TestParseBad checks that truncated or unknown output is an error.
func TestParseBad(t *testing.T) {
	list := func(text []byte) error { _, err := ParseList(text); return err }
	info := func(text []byte) error { _, err := ParseInfo(text); return err }
	uptime := func(text []byte) error { _, err := ParseUptime(text); return err }
	cards := func(text []byte) error { _, err := ParseNICs(text); return err }
	disks := func(text []byte) error { _, err := ParseDisks(text); return err }
	details := func(text []byte) error { _, err := ParseDetails(text); return err }
	const head = "Name ID Mem VCPUs State Time(s)\n"
	for what, c := range map[string]struct {
		parse func([]byte) error
		text  string
	}{
		"nothing": {list, ""}, "no head": {list, "x 1 2 3 r----- 1.0\n"}, "no name": {list, head + "1 2 3 r----- 1.0\n"},
		"no number": {list, head + "x y 2 3 r----- 1.0\n"},
		"no state":  {list, head + "x 1 2 3 running 1.0\n"}, "strange state": {list, head + "x 1 2 3 rrrrrr 1.0\n"},
		"much memory": {list, head + "x 1 99999999999999999 3 r----- 1.0\n"},
		"no version":  {info, "host : x\n"}, "bad processors": {info, "xen_version : 4.17\nnr_cpus : many\n"},
		"no uptime": {uptime, "Name ID Uptime\nx 1\n"}, "bad clock": {uptime, "Name ID Uptime\nx 1 1:2\n"},
		"bad days": {uptime, "Name ID Uptime\nx 1 many days, 1:02:03\n"},
		"no card":  {cards, "Idx BE Mac Addr. handle state\n0 0\n"},
		"bad card": {cards, "Idx BE Mac Addr. handle state\n0 0 nothing 0 4 9 1/2 /x\n"},
		"bad disk": {disks, "Vdev BE handle state\nx 0 3 4 1 1 /x\n"}, "no JSON": {details, "(domain (domid 1))"},
		"other JSON": {details, `[1]`},
	} {
		if c.parse([]byte(c.text)) == nil {
			t.Errorf("%s is taken", what)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, version := range versions {
		for _, name := range []string{"list-" + version, "list-l-" + version + ".json", "info-" + version,
			"uptime-" + version, "network-list-" + version, "block-list-" + version} {
			f.Add(sample(f, name))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		domains, err := ParseList(text)
		for _, d := range domains {
			if err == nil && (d.Name == "" || !d.State.isValid() || d.Memory < 0) {
				t.Errorf("%+v", d)
			}
		}
		_, _ = ParseDetails(text)
		_, _ = ParseInfo(text)
		_, _ = ParseUptime(text)
		_, _ = ParseNICs(text)
		_, _ = ParseDisks(text)
	})
}
