package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// A p below serialLevel, after Holm's correction over the kinds of a table, is not considered
// chance. If the uncorrected p of a kind is below suspectLevel, more rounds are needed to decide.
// shuffles is the number of other orders with which a series is compared.
const (
	serialLevel  = 0.05
	suspectLevel = 0.1
	shuffles     = 999
)

// A Series holds the values of one figure in one setting, or the ratios of two, by round. Kind is
// the kind of its test. What changes slowly on a host (a disk, a network) affects all figures of a
// kind.
type Series struct {
	Kind, Figure string
	Values       []float64
	Instances    []int // of the rounds, as in a Comparison
}

// A Serial says how many consecutive instances count as one. BlockLength is 1 if there is no
// autocorrelation.
type Serial struct {
	BlockLength int
	Suspected   bool // possible autocorrelation, but too few rounds to tell
}

// Blocks tests for each kind whether neighbours in time are more alike than others, and by how
// much. A host that changes slowly yields each value several times, so there are fewer independent
// values than rounds.
//
// A table is tested by kind, because a mean over the whole table hides three correlated figures of
// a disk among twenty others. Within a kind, a single row may be correlated, for example if a mode
// changed once in one setting. Therefore a kind is tested by the mean over its rows and by the
// greatest of them.
func Blocks(all []Series) []Serial {
	kinds := groupByKind(all)
	p := make([]float64, len(kinds))
	for i, k := range kinds {
		k.test()
		p[i] = k.p
	}
	adjusted := holm(p)
	serials := make([]Serial, len(all))
	for i := range serials {
		serials[i].BlockLength = 1
	}
	for i, k := range kinds {
		k.judge(adjusted[i] <= serialLevel, adjusted[i]/max(p[i], math.SmallestNonzeroFloat64), serials)
	}
	return serials
}

// A kindSeries holds the series of a kind.
type kindSeries struct {
	figures []figureSeries
	p       float64 // of the kind
	meanP   float64 // of the mean over its rows
	length  int     // of the longest series
}

// A figureSeries holds the series of one figure of a kind.
type figureSeries struct {
	name   string
	rows   []series
	places []int   // indices of the rows in the argument of Blocks
	found  float64 // highest autocorrelation of its rows
	p      float64 // probability that the highest of all rows is as high by chance
}

func groupByKind(all []Series) (kinds []*kindSeries) {
	at := map[string]*kindSeries{}
	for i, s := range all {
		k := at[s.Kind]
		if k == nil {
			k = &kindSeries{p: 1, meanP: 1}
			at[s.Kind], kinds = k, append(kinds, k)
		}
		f := slices.IndexFunc(k.figures, func(f figureSeries) bool { return f.name == s.Figure })
		if f < 0 {
			f = len(k.figures)
			k.figures = append(k.figures, figureSeries{name: s.Figure, p: 1})
		}
		medians := series(groupByInstance(s.Values, s.Instances).finite().medians())
		if len(medians) < MinInstances {
			medians = nil // too few to tell
		}
		k.figures[f].rows, k.figures[f].places = append(k.figures[f].rows, medians), append(k.figures[f].places, i)
		k.length = max(k.length, len(medians))
	}
	return kinds
}

// test is a permutation test over all rows of the kind together, because one row has too few
// values. It counts the other orders of the instances, the same for all rows, in which the
// autocorrelation is as high. It ends early if that is frequent.
func (k *kindSeries) test() {
	if k.length == 0 {
		return
	}
	mean, greatest := k.statistic(nil, true)
	g := rand.New(rand.NewPCG(uint64(k.length), uint64(len(k.figures)))) // the same table yields the same result
	asMean, asGreatest, done := 1, 1, 0
	maxima := make([]float64, 0, shuffles)
	const minShuffles = shuffles * 2 / 10
	for done < shuffles && (asMean <= minShuffles || asGreatest <= minShuffles) {
		done++
		m, most := k.statistic(g.Perm(k.length), false)
		maxima = append(maxima, most)
		if m >= mean {
			asMean++
		}
		if most >= greatest {
			asGreatest++
		}
	}
	share := func(n int) float64 { return float64(n) / float64(done+1) }
	for i := range k.figures {
		above := 1
		for _, most := range maxima {
			if most >= k.figures[i].found {
				above++
			}
		}
		k.figures[i].p = share(above)
	}
	k.meanP = share(asMean)
	k.p = min(1, 2*min(k.meanP, share(asGreatest)))
}

// statistic returns the mean and the highest autocorrelation of the rows in another order of
// instances. With keep, which is for the order of measurement, it stores the highest of each
// figure.
func (k *kindSeries) statistic(order []int, keep bool) (mean, greatest float64) {
	n := 0
	greatest = math.Inf(-1)
	into := make(series, 0, k.length)
	for i := range k.figures {
		figure := math.Inf(-1)
		for _, s := range k.figures[i].rows {
			if len(s) == 0 {
				continue
			}
			if order != nil {
				s = s.reordered(order, into[:0])
			}
			r := s.autocorrelation()
			mean += r
			figure = max(figure, r)
			n++
		}
		if keep {
			k.figures[i].found = figure
		}
		greatest = max(greatest, figure)
	}
	return mean / float64(max(n, 1)), greatest
}

// judge sets the blocks of a kind: of all figures, or only of those that are correlated.
func (k *kindSeries) judge(correlated bool, correction float64, serials []Serial) {
	suspected := !correlated && k.p <= suspectLevel
	whole := correlated && 2*k.meanP*correction <= serialLevel
	block := 1
	if whole {
		block = blockLength(correlation(k.figures))
	}
	for _, f := range k.figures {
		own := Serial{BlockLength: block, Suspected: suspected}
		if correlated && 2*f.p*correction <= serialLevel {
			own.BlockLength = max(block, blockLength(correlation([]figureSeries{f})))
		}
		for _, i := range f.places {
			serials[i] = own
		}
	}
}

// correlation estimates the correlation of neighbours: over all values together or, if that is
// higher, as the mean over rows. Rows in which nothing changed during the measurement show none,
// and the sum over all values gives them no weight. The estimate is corrected for its bias in short
// series (Kendall, Biometrika 41, 1954).
func correlation(figures []figureSeries) float64 {
	square, product, mean, length, rows := 0.0, 0.0, 0.0, 0.0, 0.0
	for _, f := range figures {
		for _, s := range f.rows {
			if len(s) == 0 {
				continue
			}
			a, b := s.products()
			square, product = square+a, product+b
			mean += s.autocorrelation()
			length += float64(len(s))
			rows++
		}
	}
	if rows == 0 || square == 0 {
		return 0
	}
	n := length / rows
	return min((n*max(product/square, mean/rows)+1)/(n-3), 0.99)
}

// A series holds figures by instance, in the order of measurement.
type series []float64

// products returns the sum of the squares of a series and the sum of the products of neighbours,
// both after subtracting the mean.
func (s series) products() (square, product float64) {
	middle := mean(s)
	for i, v := range s {
		square += (v - middle) * (v - middle)
		if i > 0 {
			product += (v - middle) * (s[i-1] - middle)
		}
	}
	return square, product
}

// autocorrelation returns the correlation of each value with the one before it (lag 1), from -1 to
// 1.
func (s series) autocorrelation() float64 {
	square, product := s.products()
	if square == 0 {
		return 0
	}
	return product / square
}

// reordered returns the values in another order, which may be that of a longer series.
func (s series) reordered(order []int, into series) series {
	for _, i := range order {
		if i < len(s) {
			into = append(into, s[i])
		}
	}
	return into
}

// blockLength returns how many neighbours are resampled as one (Carlstein, Annals of Statistics 14,
// 1986). By the variance of the mean, (1+r)/(1-r) values are worth one. Blocks three times as long
// are nine tenths independent of one another. With blocks of only that length, intervals cover 88 %
// at r = 0.5.
func blockLength(correlation float64) int {
	const lengths = 3
	r := max(0, correlation)
	return max(2, int(math.Ceil(lengths*(1+r)/(1-r))))
}
