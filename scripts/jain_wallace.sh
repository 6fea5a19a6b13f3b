#!/bin/sh
# docs/results/jain-wallace.md: sh scripts/jain_wallace.sh DATA VECTORS [OUT]
# DATA holds one folder for each data set (docs/jain-wallace.md); VECTORS is a file of word vectors.
# A stopped run goes on with the same command.
set -eu
data=$1 vectors=$2 out=${3:-runs/jain-wallace}
again() { heedmap reproduce jain-wallace "$@" --data "$data" --out "$out"; }
again sst --vectors "$vectors" --instances 400 --baselines
again news20_baseball_hockey --vectors "$vectors" --instances 300
again snli --vectors "$vectors" --instances 300 --epochs 6
again babi_qa1 --instances 300 --epochs 20
again ag_news --vectors "$vectors" --instances 300
again babi_qa2 --instances 100 --train-texts 2500 --test-texts 500 --epochs 8
