// Simulate shows how reliable the lab's conclusions are. It simulates whole runs in which only one
// figure in one setting differs, by 10 %. The code that judges real runs judges them: package
// report reads the trials like those of a bundle, asks for more rounds, and returns the verdicts.
//
//	go run ./bench/lab/simulate            all models, 200 tables of each: half an hour on two processors
//	go run ./bench/lab/simulate -tables 1  only to check that it runs
//
// A table is false if it reports a difference for any figure that does not differ from bare.
// Intervals count if the report calls them 95 %.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
)

var (
	tables = flag.Int("tables", 200, "tables of each kind")
	seed   = flag.Uint64("seed", 1, "of the first table; the others follow it")
	only   = flag.String("only", "", "models whose names contain this")
	tell   = flag.Bool("tell", false, "print the first false row of each false table")
	rounds = flag.Int("rounds", 10, "minimum number of kept rounds")
	most   = flag.Int("most", 30, "maximum number of kept rounds")
)

func main() {
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	fmt.Printf("%d tables of 20 figures in two settings, seeds from %d, %d to %d rounds\n\n", *tables, *seed, *rounds,
		*most)
	fmt.Println("| model | rounds per instance | rounds | false tables | without a warning | same | called 95 % | of these cover | blocks | +10 % found |")
	fmt.Println("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, m := range models {
		if !strings.Contains(m.name, *only) {
			continue
		}
		for _, per := range []int{1, 3} {
			all := make([]outcome, *tables)
			each(*tables, func(i int) {
				all[i] = look(newWorld(m, *seed+uint64(i), per, 1.1).measure(*rounds, *most))
			})
			fmt.Println(add(all).line(m.name, per))
		}
	}
	compared()
}

// each calls do for every number below n, in two goroutines.
func each(n int, do func(i int)) {
	var group sync.WaitGroup
	next := make(chan int)
	for range 2 {
		group.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	group.Wait()
}
