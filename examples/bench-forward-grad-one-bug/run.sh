# Takes no path, and writes beside itself.
exec python3 train.py
