package disk

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"orrery/internal/host"
	"orrery/internal/lab/place"
	"orrery/internal/lab/test"
)

// A fastDisk is a place whose disk has a given speed in bytes per second and a given free space.
type fastDisk struct {
	host.Local
	rate, room float64
	sizes      *[]int64 // file sizes in MiB with which bonnie++ was run
}

func (f fastDisk) Run(_ context.Context, c host.Command) error {
	text := ""
	switch i := slices.Index(c.Args, "-s"); {
	case slices.Contains(c.Args, "/proc/meminfo"):
		text = "MemTotal: 1000 kB\n"
	case c.Args[0] == "stat":
		text = fmt.Sprintf("%.0f 1 1000000\n", f.room)
	case i > 0 && c.Args[i+1] != "0":
		if c.Stdin != nil { // wait at the barrier
			_, _ = c.Stderr.Write([]byte("\n"))
			_, _ = io.ReadAll(c.Stdin)
		}
		mib, _ := strconv.ParseInt(c.Args[i+1], 10, 64)
		*f.sizes = append(*f.sizes, mib)
		words := slices.Repeat([]string{""}, columnsOf198)
		words[0], words[1] = "1.98", "2.00"
		for _, column := range blockColumns {
			words[column.index] = fmt.Sprint(int(f.rate / 1024))
			if float64(mib<<20)/f.rate < 0.5 && column.unit == bytesPerSecond {
				words[column.index] = "+++++"
			}
		}
		text = strings.Join(words, ",") + "\n"
	}
	if c.Stdout == nil {
		return nil
	}
	_, err := c.Stdout.Write([]byte(text))
	return err
}

// TestFitting: bonnie++ gets a file for which each phase is long enough in the fastest place, if
// there is enough space.
func TestFitting(t *testing.T) {
	for name, c := range map[string]struct {
		options string
		room    float64
		sizes   []int64 // sizes tried in the slow place and then in the fast one
		again   []int64 // the same after the nodes were recreated
		last    int64   // the size that is measured
	}{
		"fits":    {"", 1e12, []int64{256, 256, 512, 1024, 2048}, []int64{2048}, 2048},
		"room":    {"", 600 << 20, []int64{256, 256, 512}, []int64{512}, 512},
		"bounded": {`max_size = "1GiB"`, 1e12, []int64{256, 256, 512}, nil, 1024},
		"fixed":   {`max_size = "256MiB"`, 1e12, nil, nil, 256},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := New(from("program = \"bonnie++\"\n" + c.options))
			if err != nil {
				t.Fatal(err)
			}
			var sizes []int64
			slow := trial(&place.Place{Runner: fastDisk{rate: 100e6, room: c.room, sizes: &sizes}, Name: "slow", Dir: "/d"})
			fast := trial(&place.Place{Runner: fastDisk{rate: 2.2e9, room: c.room, sizes: &sizes}, Name: "fast", Dir: "/d"})
			for _, want := range [][]int64{c.sizes, c.again} {
				sizes = nil
				for _, place := range []*test.Trial{slow, fast} {
					if err := d.Check(t.Context(), place); err != nil {
						t.Fatal(err)
					}
				}
				if !slices.Equal(sizes, want) {
					t.Errorf("tried with %v MiB, not %v", sizes, want)
				}
			}
			sizes = nil
			if _, err := d.Run(t.Context(), slow); err != nil {
				t.Fatal(err)
			}
			if want := []int64{c.last}; !slices.Equal(sizes, want) {
				t.Errorf("measured with %v MiB, not %v", sizes, want)
			}
		})
	}
}
