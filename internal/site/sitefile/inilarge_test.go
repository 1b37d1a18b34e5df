package sitefile

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
)

// largeDatabases return the section with a number. The sections have one property in common, or
// each has its own.
var largeDatabases = map[string]func(i int) string{
	"names": func(i int) string {
		return fmt.Sprintf("[h%d]\nip = 10.0.%d.%d\nnetmask = 255.255.0.0\n", i, i>>8&255, i&255)
	},
	"one name":  func(i int) string { return fmt.Sprintf("[h.n%d]\n", i) },
	"networks":  func(i int) string { return fmt.Sprintf("[h%d]\nip = 10.%d.%d.1\n", i, i>>8, i&255) },
	"addresses": func(i int) string { return fmt.Sprintf("[h%d]\nip = 10.0.0.1\nnetmask = 255.255.0.0\n", i) },
	"servers":   func(i int) string { return fmt.Sprintf("[h%d]\nhost_server = sv%d\n", i, i) },
	"one host": func(i int) string {
		return fmt.Sprintf("[h%d]\nhost_server = sv%d\n[sv%d]\nip = 10.0.0.1\n", i, i, i)
	},
	"roles":     func(i int) string { return fmt.Sprintf("[h%d]\nroles = r%d, all\ngroups = g%d, all\n", i, i, i) },
	"releases":  func(i int) string { return fmt.Sprintf("[h%d]\nctid = %d\n", i, i*1000+1) },
	"templates": func(i int) string { return fmt.Sprintf("[h%d]\ntemplate = t%d\n", i, i) },
}

// TestImportIsLinear: eight times as many sections take about eight times as long, whatever they
// have in common. A quadratic import would take 64 times as long.
//
// Promise (Files of strangers): A host database costs time in proportion to its size, within
// limits. With site/sitefile.TestImportIsBounded.
func TestImportIsLinear(t *testing.T) {
	const few, many, maxRatio = 2500, 20_000, 24
	for name, section := range largeDatabases {
		t.Run(name, func(t *testing.T) {
			least := max(time.Millisecond, min(importTime(t, few, section), importTime(t, few, section)))
			var took time.Duration
			for range 2 { // a second attempt, in case the machine is busy
				if took = importTime(t, many, section); took <= maxRatio*least {
					return
				}
			}
			t.Errorf("%d sections take %v, and %d take %v", few, least, many, took)
		})
	}
}

// importTime returns the CPU time of the import of a database.
func importTime(t *testing.T, sections int, section func(int) string) time.Duration {
	t.Helper()
	var b strings.Builder
	for i := range sections {
		b.WriteString(section(i))
	}
	began := processor(t)
	if _, err := ImportINI(strings.NewReader(b.String()), "hosts.ini", ""); err != nil {
		t.Fatal(err)
	}
	return processor(t) - began
}

// processor returns the CPU time of this process.
func processor(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestImportIsBounded: sections and databases that are larger than any real one are rejected early.
func TestImportIsBounded(t *testing.T) {
	keys := func(key string, n int) (text string) {
		for i := range n {
			text += fmt.Sprintf("%s%d=1\n", key, i)
		}
		return text
	}
	sections := func(n int) (text string) {
		for i := range n {
			text += fmt.Sprintf("[h%d]\n", i)
		}
		return text
	}
	for name, c := range map[string]struct{ text, want string }{
		"one section":   {"[a]\n" + keys("k", 2000), "[a] has more than 1000 lines"},
		"one value":     {"[a]\nk=1\n" + strings.Repeat(" [x]\n", 2000), "[a] has more than 1000 lines"},
		"no section":    {keys("k", 2000), "[DEFAULT] has more than 1000 lines"},
		"with defaults": {"[DEFAULT]\n" + keys("k", 900) + sections(2000), "values, too many for a host database"},
	} {
		_, err := ImportINI(strings.NewReader(c.text), "hosts.ini", "")
		var p *problem.Problem
		if !errors.As(err, &p) || p.Kind != problem.Mistake || !strings.Contains(err.Error(), c.want) ||
			!strings.HasPrefix(err.Error(), "hosts.ini") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestImportRefuses: a database whose import would lose a machine, or move one into another
// network, is rejected with the line.
func TestImportRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"[a]\nram = 64\n[b]\n[a]\nram = 128\n":              "hosts.ini:4: section [a] exists twice, first in line 1",
		"[a]\nip = 10.0.0.2\nnetmask = 255.255.0.255\n":     `hosts.ini:3: [a] netmask: "255.255.0.255" is not a netmask`,
		"[a]\nip = 10.0.0.2\nIP: 10.0.0.3\n":                "hosts.ini:3: [a] ip is set twice, first in line 2",
		"[DEFAULT]\nram = 64\nram = 64\n":                   "hosts.ini:3: [DEFAULT] ram is set twice, first in line 2",
		"[DEFAULT]\nnetmask = 24\n[a]\nip = 10.0.0.2\n":     `hosts.ini:2: [a] netmask: "24" is not a netmask`,
		"[a]\nip_x = 10.0.0.2\nnetmask_x = 255.255.255.1\n": `hosts.ini:3: [a] netmask_x: "255.255.255.1" is not a netmask`,
	} {
		_, err := ImportINI(strings.NewReader(text), "hosts.ini", "")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestImportOfGateways: a gateway or netmask that belongs to no network of its section is reported
// with its line.
func TestImportOfGateways(t *testing.T) {
	for text, want := range map[string]string{
		"[a]\nip = 10.0.0.2\ngateway = 10.9.0.1\n":                                   "hosts.ini:3: [a] gateway = 10.9.0.1: no network of this section can have this gateway",
		"[a]\nip = 10.0.0.2\ngateway = 10.0.0.255\n":                                 "hosts.ini:3: [a] gateway = 10.0.0.255: no network of this section can have this gateway",
		"[a]\nip = 10.0.0.2\ngateway = the router\n":                                 "hosts.ini:3: [a] gateway = the router: no network of this section can have this gateway",
		"[a]\nip = 10.0.0.2\nip_data = 10.0.1.2\ngateway = 10.0.1.1\n":               "",
		"[DEFAULT]\ngateway = 10.0.0.1\n[a]\nip = 10.0.0.2\n[b]\nip = 10.0.1.2\n":    "",
		"[a]\nip = 10.0.0.2\nnetmask = 255.255.0.0\ngateway = 10.0.9.1\n":            "",
		"[a]\nip = 10.0.0.2\nnetmask = 255.255.255.128\ngateway = 10.0.0.200\n[b]\n": "hosts.ini:4: [a] gateway = 10.0.0.200: no network of this section can have this gateway",
		"[a]\ngateway = 10.0.0.1\n":                                                  "hosts.ini:2: [a] gateway = 10.0.0.1: no network of this section can have this gateway",
		"[a]\nip = 10.0.0.2\ngateway_data = 10.0.0.1\n":                              "hosts.ini:3: [a] gateway_data = 10.0.0.1: no network of this section can have this gateway",
		"[a]\nip_x = 10.0.0.2\ngateway = 10.0.0.1\nnetmask = 255.255.0.0\n":          "",
		"[a]\nip2 = 10.0.0.2\ngateway2 = 10.0.0.1\nnetmask2 = 255.255.0.0\n":         "",
		"[a]\nnetmask = 255.255.0.0\n":                                               "hosts.ini:2: [a] netmask = 255.255.0.0: no network of this section has this netmask",
		"[a]\nip = 10.0.0.2/24\nnetmask = 255.255.0.0\n":                             "hosts.ini:3: [a] netmask = 255.255.0.0: no network of this section has this netmask",
		"[a]\nip = 10.0.0.2\nnetmask_data = 255.255.0.0\n":                           "hosts.ini:3: [a] netmask_data = 255.255.0.0: no network of this section has this netmask",
		"[a]\nip = 10.0.0.2\n[b]\nip = 10.0.0.200\nnetmask = 255.255.255.128\n":      "hosts.ini:5: [b] netmask = 255.255.255.128: no network of this section has this netmask",
		"[DEFAULT]\nnetmask = 255.255.0.0\n[a]\n[b]\nip = 10.0.0.2/24\n":             "",
	} {
		made, err := ImportINI(strings.NewReader(text), "hosts.ini", "")
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if got := strings.Join(made.Lost, "\n"); got != want {
			t.Errorf("%q: lost is %q, want %q", text, got, want)
		}
	}
}
